// Package inference is the official conformance suite of the Gateway API inference extension as a program of its own. Its
// tests and what they check are unmodified.
package inference

import (
	"testing"
	"time"

	"sigs.k8s.io/gateway-api-inference-extension/conformance"
)

// Longest wait for answers of one kind. The test of weighted pools waits for each Pod until three answers in a row are
// from it, looks once a second, and gives the pool of the Pod 30 percent of the requests at random: that takes 36 seconds
// on average, and would take longer than the 200 of the suite in one run of a hundred.
const patience = 20 * time.Minute

func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.TimeoutConfig.MaxTimeToConsistency = patience
	conformance.RunConformanceWithOptions(t, options)
}
