package main

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// schemas are JSON Schemas (draft 2020-12) of what weft prints as JSON. TestSchemas makes
// them of the Go types.
//
//go:embed schema/*.json
var schemas embed.FS

// schemaNames lists what there is a schema of.
func schemaNames() (names []string) {
	files, _ := fs.Glob(schemas, "schema/*.json") // the pattern is right
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "schema/"), ".json"))
	}
	slices.Sort(names)
	return names
}

func newSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [name]",
		Short: "Print the JSON Schema of what a command prints with --json",
		Long: `Schema prints the JSON Schema (draft 2020-12) of what a command prints with --json;
without a name, the names that there are. The objects of weft status, weft blame and
weft conns have a version: it rises when a key goes or comes to mean something else. New keys
do not raise it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(schemaNames(), "\n"))
				return nil
			}
			text, err := schemas.ReadFile("schema/" + args[0] + ".json")
			if err != nil {
				return usagef("schema: there is none of %q; there are those of %s", args[0], strings.Join(schemaNames(), ", "))
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}
