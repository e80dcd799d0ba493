// expositions reads metrics in the Prometheus text format with the parser of Prometheus' own libraries, from its input to
// the end. It prints one line of JSON for each series, or what is wrong with the text, and then exits with 1.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

type series struct {
	Name   string            `json:"name"`
	Type   string            `json:"type"`
	Labels map[string]string `json:"labels"`
	// Of a histogram how often it was observed.
	Value float64 `json:"value"`
}

func main() {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := json.NewEncoder(os.Stdout)
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			lines.Encode(series{name, family.GetType().String(), labels, value})
		}
	}
}
