package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// command is what weft commands prints of one of its commands.
type command struct {
	Use      string    `json:"use"`
	Short    string    `json:"short"`
	Long     string    `json:"long"`
	Example  string    `json:"example"`
	Flags    []cmdFlag `json:"flags"`
	Commands []command `json:"commands"`
}

type cmdFlag struct {
	Name       string `json:"name"`
	Shorthand  string `json:"shorthand"`
	Usage      string `json:"usage"`
	Type       string `json:"type"`
	Default    string `json:"default"`
	NoValue    string `json:"no_value"` // what the flag is without a value
	Persistent bool   `json:"persistent"`
}

// manual makes a page of each command.
func (t *tree) manual(ctx context.Context, describe string) error {
	text, err := exec.CommandContext(ctx, describe, "commands").Output()
	if err != nil {
		return fmt.Errorf("%s commands: %w", describe, err)
	}
	var c command
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("%s commands: %w", describe, err)
	}
	pages := filepath.Join(t.dir, "man")
	if err := os.Mkdir(pages, 0o755); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Date: &t.source.time, Source: "weft " + t.source.version, Manual: "weft"}
	root := c.cobra()
	root.DisableAutoGenTag = true // which would have the time of the build
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	names, err := os.ReadDir(pages)
	if err != nil {
		return err
	}
	for _, name := range names {
		page, err := os.ReadFile(filepath.Join(pages, name.Name()))
		if err != nil {
			return err
		}
		if err := t.compressed("/usr/share/man/man1/"+name.Name(), page); err != nil {
			return err
		}
	}
	return nil
}

// cobra is the command as weft's own, but that it does nothing.
func (c command) cobra() *cobra.Command {
	cmd := &cobra.Command{Use: c.Use, Short: c.Short, Long: asMarkdown(c.Long), Example: c.Example, Run: func(*cobra.Command, []string) {}}
	for _, f := range c.Flags {
		set := cmd.Flags()
		if f.Persistent {
			set = cmd.PersistentFlags()
		}
		_, usage := pflag.UnquoteUsage(&pflag.Flag{Usage: f.Usage, Value: kind(f.Type)})
		set.AddFlag(&pflag.Flag{Name: f.Name, Shorthand: f.Shorthand, Usage: asMarkdown(usage), DefValue: f.Default, NoOptDefVal: f.NoValue, Value: kind(f.Type)})
	}
	for _, sub := range c.Commands {
		cmd.AddCommand(sub.cobra())
	}
	return cmd
}

// kind is a flag's value, of which a page only tells the type.
type kind string

func (k kind) String() string   { return "" }
func (k kind) Set(string) error { return nil }
func (k kind) Type() string     { return string(k) }

// asMarkdown is a text of weft, which is plain, for what makes pages, which reads Markdown:
// there marks of emphasis, links and HTML would get lost.
func asMarkdown(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") { // a table or an example: as it stands
			lines[i] = "    " + strings.TrimPrefix(line, "  ")
			if i > 0 && lines[i-1] != "" && !strings.HasPrefix(lines[i-1], "    ") {
				lines[i] = "\n" + lines[i]
			}
			continue
		}
		lines[i] = escape.Replace(line)
	}
	return strings.Join(lines, "\n")
}

var escape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "<", `\<`, "`", "\\`", "#", `\#`)
