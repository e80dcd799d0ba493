// Package inference is the official conformance suite of the Gateway API inference extension as a program of its own,
// unmodified.
package inference

import (
	"testing"

	"sigs.k8s.io/gateway-api-inference-extension/conformance"
)

func TestConformance(t *testing.T) { conformance.RunConformance(t) }
