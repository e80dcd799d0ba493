// collector is an OpenTelemetry collector made of the public parts: it receives OTLP over gRPC and HTTP as its
// configuration says, and prints each batch that it took as one line of OTLP's JSON. The configuration is YAML, the only
// argument; its exporter is "stdout". It prints "ready" when it receives and ends when its input does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

var printing sync.Mutex

func print(line []byte, err error) error {
	if err != nil {
		return err
	}
	printing.Lock()
	defer printing.Unlock()
	_, err = fmt.Printf("%s\n", line)
	return err
}

type printer struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.ConsumeLogsFunc
	consumer.ConsumeTracesFunc
}

func (printer) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func stdout() exporter.Factory {
	made := printer{
		ConsumeLogsFunc: func(_ context.Context, logs plog.Logs) error {
			return print((&plog.JSONMarshaler{}).MarshalLogs(logs))
		},
		ConsumeTracesFunc: func(_ context.Context, traces ptrace.Traces) error {
			return print((&ptrace.JSONMarshaler{}).MarshalTraces(traces))
		},
	}
	return exporter.NewFactory(
		component.MustNewType("stdout"),
		func() component.Config { return &struct{}{} },
		exporter.WithLogs(func(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) {
			return made, nil
		}, component.StabilityLevelStable),
		exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
			return made, nil
		}, component.StabilityLevelStable),
	)
}

func factories() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](stdout())
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: otelconftelemetry.NewFactory()}, err
}

func run() error {
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{"yaml:" + os.Args[1]},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err != nil {
		return err
	}
	go func() {
		for collector.GetState() != otelcol.StateRunning {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		collector.Shutdown()
	}()
	return collector.Run(context.Background())
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: collector CONFIGURATION")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
