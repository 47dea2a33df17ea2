//go:build !linux

package main

import "github.com/spf13/cobra"

func runLabUI(*cobra.Command, string, *uiFlags) error {
	return absentf("ui --lab: needs the network namespaces of Linux; run it there or in a virtual machine")
}
