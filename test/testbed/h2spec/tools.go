//go:build tools

// Package tools names the command that the testbed builds, so that go.mod and go.sum pin what it needs.
package tools

import (
	_ "github.com/summerwind/h2spec/cmd/h2spec"
)
