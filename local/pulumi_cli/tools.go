//go:build tools

// Package tools pins the Pulumi CLI: go.mod names its version, go.sum the hashes of all that it is built from.
package tools

import _ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
