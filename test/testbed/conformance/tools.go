//go:build tools

// Package conformance names the server that the suite sends requests to, so that go.mod and go.sum pin what it needs.
package conformance

import _ "sigs.k8s.io/gateway-api/conformance/echo-basic"
