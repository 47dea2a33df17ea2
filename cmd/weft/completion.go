package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// values are what a flag or an argument can be, as far as a shell is told. cmd has been given
// what stands before it on the command line.
type values func(cmd *cobra.Command) []string

// completion is how a shell completes a flag's value or an argument.
type completion struct {
	values values
	list   bool // several, with commas between
	files  bool // or a file
	dirs   bool // a directory
	free   bool // nobody knows
}

// completeValues makes shells complete values, too, once all commands are there.
func completeValues(root *cobra.Command) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { completeFlag(cmd, f) })
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { completeFlag(cmd, f) })
		if c, ok := arguments[commandPath(cmd)]; ok {
			cmd.ValidArgsFunction = c.complete
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// commandPath is a command without weft, such as "lab fail".
func commandPath(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// completeFlag has no effect where nothing is known of a flag: shells then complete files.
func completeFlag(cmd *cobra.Command, f *pflag.Flag) {
	if c, ok := completionOf(cmd, f); ok {
		cmd.RegisterFlagCompletionFunc(f.Name, c.complete) // fails only if there is one
	}
}

// completionOf finds how a flag is completed: by its command and name, by its name, or by what
// its help says that it takes.
func completionOf(cmd *cobra.Command, f *pflag.Flag) (completion, bool) {
	if f.Value.Type() == "bool" { // it is there or not
		return completion{free: true}, true
	}
	if c, ok := flagValues[commandPath(cmd)+" --"+f.Name]; ok {
		return c, true
	}
	if c, ok := flagValues[f.Name]; ok {
		return c, true
	}
	switch what, _ := pflag.UnquoteUsage(f); {
	case slices.Contains([]string{"int", "uint", "uint64", "float64", "duration", "float", "Mbit/s", "bytes"}, what):
		return completion{free: true}, true
	case what == "file", what == "FILE":
		return completion{files: true}, true
	case what == "directory", what == "root":
		return completion{dirs: true}, true
	}
	switch f.Value.Type() {
	case "int", "int64", "uint32", "uint", "uint8", "uint64", "float64", "duration", "intSlice", "durationSlice":
		return completion{free: true}, true
	}
	return completion{}, false
}

// complete is what cobra asks.
func (c completion) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch {
	case c.dirs:
		return nil, cobra.ShellCompDirectiveFilterDirs
	case c.free:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case c.values == nil:
		return nil, cobra.ShellCompDirectiveDefault
	}
	before := ""
	if i := strings.LastIndexByte(typed, ','); c.list && i >= 0 {
		before = typed[:i+1]
	}
	given := strings.Split(before, ",")
	var fit []string
	for _, v := range c.values(cmd) {
		if strings.HasPrefix(before+v, typed) && !slices.Contains(given, v) && !slices.Contains(args, v) {
			fit = append(fit, before+v)
		}
	}
	switch {
	case c.files && len(fit) == 0:
		return nil, cobra.ShellCompDirectiveDefault
	case c.list:
		return fit, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return fit, cobra.ShellCompDirectiveNoFileComp
}

// words are values that are always the same.
func words(w ...string) values { return func(*cobra.Command) []string { return w } }

// ofList has the values that a function lists.
func ofList(list func() []string) values { return func(*cobra.Command) []string { return list() } }

// each lists what a function calls the elements of a list.
func each[T any](list func() []T, name func(T) string) values {
	return func(*cobra.Command) (all []string) {
		for _, x := range list() {
			all = append(all, name(x))
		}
		return all
	}
}

// andAll has the word for all of them, too.
func andAll(v values) values {
	return func(cmd *cobra.Command) []string { return append([]string{"all"}, v(cmd)...) }
}
