//go:build tools

// Package tools names the commands that the testbed builds, so that go.mod and go.sum pin what they need.
package tools

import (
	_ "github.com/summerwind/h2spec/cmd/h2spec"
	_ "google.golang.org/grpc/interop/client"
	_ "google.golang.org/grpc/interop/server"
)
