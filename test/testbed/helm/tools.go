//go:build tools

// Package tools names the command that the testbed builds, so that go.mod and go.sum pin what it needs.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
