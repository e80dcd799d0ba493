//go:build tools

// Package tools names the commands that the testbed builds, so that go.mod and go.sum pin what they need.
package tools

import (
	_ "github.com/spiffe/spire/cmd/spire-agent"
	_ "github.com/spiffe/spire/cmd/spire-server"
)
