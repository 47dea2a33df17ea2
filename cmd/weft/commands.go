package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandJSON is a command as weft commands prints it, for programs that make manuals.
type commandJSON struct {
	Use      string        `json:"use"`
	Short    string        `json:"short"`
	Long     string        `json:"long"`
	Example  string        `json:"example"`
	Flags    []flagJSON    `json:"flags"`
	Commands []commandJSON `json:"commands"`
}

// flagJSON is a flag of a command.
type flagJSON struct {
	Name       string `json:"name"`
	Shorthand  string `json:"shorthand"`
	Usage      string `json:"usage"`
	Type       string `json:"type"`
	Default    string `json:"default"`
	NoValue    string `json:"no_value"`   // what the flag is without a value
	Persistent bool   `json:"persistent"` // the commands below have it, too
}

// newCommandsCmd is hidden: packaging/build makes the manual of it, with what would burden this
// binary.
func newCommandsCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "commands",
		Short:  "Print all commands and flags as JSON",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root := cmd.Root()
			root.InitDefaultCompletionCmd()
			return printJSON(cmd.OutOrStdout(), described(root))
		},
	}
}

// described is a command with all below it that are not hidden.
func described(cmd *cobra.Command) commandJSON {
	cmd.InitDefaultHelpFlag()
	c := commandJSON{Use: cmd.Use, Short: cmd.Short, Long: cmd.Long, Example: cmd.Example, Flags: []flagJSON{}, Commands: []commandJSON{}}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || cmd.InheritedFlags().Lookup(f.Name) != nil {
			return
		}
		c.Flags = append(c.Flags, flagJSON{Name: f.Name, Shorthand: f.Shorthand, Usage: f.Usage, Type: f.Value.Type(), Default: f.DefValue,
			NoValue: f.NoOptDefVal, Persistent: cmd.PersistentFlags().Lookup(f.Name) != nil})
	})
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			c.Commands = append(c.Commands, described(sub))
		}
	}
	return c
}
