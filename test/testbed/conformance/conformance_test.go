// Package conformance is the official Gateway API conformance suite as a program of its own, unmodified.
package conformance

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

func TestConformance(t *testing.T) { conformance.RunConformance(t) }
