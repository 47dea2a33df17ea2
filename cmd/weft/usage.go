package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/internal/config"
	"weft/internal/exitcode"
)

// usage marks an error as one of the command line or of a file that it names.
func usage(err error) error { return exitcode.AsUsage(err) }

// usagef makes such an error.
func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// absentf makes an error of a system that lacks what a command takes.
func absentf(format string, args ...any) error { return exitcode.AsAbsent(fmt.Errorf(format, args...)) }

// cannotWrite says in words why the file that a flag names cannot be written.
func cannotWrite(flag, path string, err error) error {
	why := err
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = errors.New("there is no such directory")
	case errors.Is(err, fs.ErrPermission):
		why = errors.New("permission denied")
	default:
		if p := new(fs.PathError); errors.As(err, &p) {
			why = p.Err
		}
	}
	return usagef("--%s=%s: cannot write there: %w; name another file", flag, path, why)
}

// execute runs a command line. What cobra and pflag say of a wrong one becomes sentences here:
// which word is wrong, and what to write. A command that is none by itself prints its help on
// standard error.
func execute(ctx context.Context, root *cobra.Command) error {
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(newHelpCmd())
	root.SetFlagErrorFunc(flagError)
	inWords(root)
	var missing error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if f := cmd.Flags().Lookup("help"); cmd.Runnable() || f != nil && f.Changed {
			help(cmd, args)
			return
		}
		if missing = commandError(cmd, cmd.Flags().Args()); len(cmd.Flags().Args()) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			help(cmd, args)
		}
	})
	if err := root.ExecuteContext(ctx); err != nil {
		return rootError(root, err)
	}
	return missing
}

// newHelpCmd is cobra's, which takes an unknown command for a right one.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return rootError(cmd.Root(), err)
			case len(rest) > 0 && of.HasSubCommands():
				return commandError(of, rest)
			}
			of.InitDefaultHelpFlag()
			if err := of.Flags().Set("help", "true"); err != nil {
				return err
			}
			return of.Help()
		},
	}
}

// inWords has a command and those below it say in words which arguments they take.
func inWords(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			return argsError(cmd, check, args)
		}
	}
	for _, c := range cmd.Commands() {
		inWords(c)
	}
}

// subcommands are the names of those that users may call.
func subcommands(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// commandError says that the command of a group is missing or unknown.
func commandError(cmd *cobra.Command, args []string) error {
	names := subcommands(cmd)
	if len(args) == 0 {
		return usagef("%s: a command is missing; give one of %s", cmd.CommandPath(), strings.Join(names, ", "))
	}
	return usagef("%s %s: unknown command %q; %s", cmd.CommandPath(), args[0], args[0], config.DidYouMean(args[0], names))
}

// argsError says which argument is missing or too many. A command takes more arguments if it
// takes these and others behind them.
func argsError(cmd *cobra.Command, check cobra.PositionalArgs, args []string) error {
	more := append([]string(nil), args...)
	for range 3 {
		more = append(more, "x")
		if check(cmd, more) == nil {
			return usagef("%s: %s is missing; write %s", cmd.CommandPath(), missingArg(cmd, len(args)), useOf(cmd))
		}
	}
	if cmd.HasAvailableSubCommands() {
		return commandError(cmd, args)
	}
	for n := len(args) - 1; n >= 0; n-- {
		if check(cmd, args[:n]) == nil && n > 0 {
			return usagef("%s: argument %q is one too many; write %s", cmd.CommandPath(), args[n], useOf(cmd))
		}
	}
	return usagef("%s: takes no argument such as %q; remove it, or write what it is a value of as --FLAG=VALUE", cmd.CommandPath(), args[0])
}

// missingArg is the name of an argument in a command's Use.
func missingArg(cmd *cobra.Command, n int) string {
	if words := strings.Fields(cmd.Use)[1:]; n < len(words) {
		return strings.TrimRight(words[n], ".")
	}
	return "an argument"
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); !cmd.Runnable() && len(args) > 0 {
		return commandError(cmd, args) // of which the flag may be
	}
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &empty):
		return usagef("%s: the value is missing; write %s=%s, %s", flagName(empty.GetFlag()), flagName(empty.GetFlag()), sample(empty.GetFlag()), kindOf(empty.GetFlag()))
	case errors.As(err, &invalid):
		return invalidFlag(invalid)
	case errors.As(err, &syntax):
		return usagef("%s: is no flag; write --NAME=VALUE, as %s --help lists them", syntax.GetSpecifiedFlag(), cmd.CommandPath())
	}
	return usage(err)
}

// fewFlags are so few that all of them are named.
const fewFlags = 5

func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	name, given := e.GetSpecifiedName(), "--"+e.GetSpecifiedName()
	if short := e.GetSpecifiedShortnames(); short != "" {
		given = "-" + short
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, flagName(f))
		}
	})
	hint := config.DidYouMean("--"+name, known)
	if strings.HasPrefix(hint, "known") && len(known) > fewFlags {
		hint = fmt.Sprintf("%s --help lists those that it has; use one of them", cmd.CommandPath())
	}
	return usagef("%s: %s has no such flag; %s", given, cmd.CommandPath(), hint)
}

// invalidFlag says which values a flag takes. Types of weft's own say that themselves.
func invalidFlag(e *pflag.InvalidValueError) error {
	f := e.GetFlag()
	if own := e.Unwrap(); f.Value.Type() == "" || kinds[f.Value.Type()].text == "" {
		return usagef("%s=%s: %w", flagName(f), e.GetValue(), own)
	}
	return usagef("%s=%s: must be %s, such as %s", flagName(f), e.GetValue(), kindOf(f), sample(f))
}

// kinds say what values the types of pflag take, with an example.
var kinds = map[string]struct{ text, sample string }{
	"bool":        {"true or false", "true"},
	"int":         {"a whole number", "4"},
	"int64":       {"a whole number", "4"},
	"uint64":      {"a whole number from 0 to 18446744073709551615", "1"},
	"uint32":      {"a whole number from 0 to 4294967295", "1"},
	"float64":     {"a number", "0.5"},
	"duration":    {"a time with its unit", "500ms"},
	"intSlice":    {"whole numbers with commas between", "1,64"},
	"stringSlice": {"words with commas between", "a,b"},
	"stringArray": {"a word", "a"},
	"string":      {"a word", "a"},
}

// kindOf says what a flag takes.
func kindOf(f *pflag.Flag) string {
	if k := kinds[f.Value.Type()].text; k != "" {
		return k
	}
	return "a value"
}

// sample is a value that a flag takes: its default, if it has one that says something.
func sample(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]", "0", "0s", "false":
		if k := kinds[f.Value.Type()].sample; k != "" && f.Value.Type() != "string" && f.Value.Type() != "stringSlice" && f.Value.Type() != "stringArray" {
			return k
		}
		name, _ := pflag.UnquoteUsage(f)
		return strings.ToUpper(name)
	}
	return strings.Trim(f.DefValue, "[]")
}

// flagName is how a flag is written.
func flagName(f *pflag.Flag) string {
	if len(f.Name) == 1 {
		return "-" + f.Name
	}
	return "--" + f.Name
}

// What cobra says without a type of its own.
var (
	unknownCommand = regexp.MustCompile(`^unknown command "(.*)" for "weft"`)
	exclusiveFlags = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)
)

// rootError says in words what cobra finds before it asks a command.
func rootError(root *cobra.Command, err error) error {
	if err == nil || exitcode.Of(err) == exitcode.Usage {
		return err
	}
	if m := unknownCommand.FindStringSubmatch(err.Error()); m != nil {
		return commandError(root, m[1:])
	}
	if m := exclusiveFlags.FindStringSubmatch(err.Error()); m != nil {
		return usagef("--%s: exclude each other; give one of them", strings.Join(strings.Fields(m[1]), ", --"))
	}
	return err
}

// useOf is how a command is written.
func useOf(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }
