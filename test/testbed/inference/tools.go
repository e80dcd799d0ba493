//go:build tools

// Package inference names the endpoint picker, so that go.mod and go.sum pin what it needs.
package inference

import _ "sigs.k8s.io/gateway-api-inference-extension/cmd/epp"
