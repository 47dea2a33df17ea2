package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"weft/internal/exitcode"
)

// located is an error with its place in a file moved to its beginning.
type located struct {
	text string
	err  error
}

func (l located) Error() string { return l.text }
func (l located) Unwrap() error { return l.err }

// lineFirst is the place of an error as parsers of YAML and of topologies say it.
var lineFirst = regexp.MustCompile(`^(?:graph: |topology file: |containerlab: )*line (\d+): `)

// kinds are what errors of a text begin with.
var kinds = regexp.MustCompile(`^(?:graph: |topology file: |containerlab: )*`)

// InFile says of an error of a file's text in which file and line it is, as FILE:LINE. It is a
// usage error.
func InFile(file string, text []byte, err error) error {
	if err == nil {
		return nil
	}
	msg := err.Error()
	if strings.HasPrefix(kinds.ReplaceAllString(msg, ""), "yaml: ") {
		return exitcode.AsUsage(syntaxError(file, text, err))
	}
	where := file
	if m := lineFirst.FindStringSubmatch(msg); m != nil {
		where, msg = file+":"+m[1], msg[len(m[0]):]
	}
	return exitcode.AsUsage(located{where + ": " + msg, err})
}

// complaints are what the parser of YAML says, and what people say in place of it.
var complaints = []struct{ says, means string }{
	{"mapping values are not allowed", "a second colon, or a key that is indented below a value; put a value with a colon in quotes, and align keys"},
	{"did not find expected key", "neither a key with a value nor a part of what is above; write key: value, and align it with its neighbours"},
	{"did not find expected '-' indicator", "not an entry of the list above; begin it with - , or align it with its neighbours"},
	{"could not find expected ':'", "a colon is missing; write key: value"},
	{"did not find expected ',' or", "a bracket is not closed; close it, and put commas between the entries"},
	{"found unexpected end of stream", "a quote or a bracket is not closed; close it"},
	{"found unexpected document indicator", "a quote is not closed; close it"},
	{"did not find expected node content", "a value is missing or begins with a comma or a bracket; write one, in quotes if it has such a letter"},
	{"found unknown escape character", "an unknown letter behind a backslash; use single quotes"},
	{"unknown anchor", "anchors and aliases are not for this file; write the value out, in quotes if it begins with *"},
	{"did not find expected alphabetic", "anchors, aliases and tags are not for this file; put a value that begins with *, & or ! in quotes"},
	{"found character that cannot start any token", "a letter that no value begins with, or a tab; put the value in quotes, behind a space"},
	{"control characters are not allowed", "not a text; write it in UTF-8, without control characters"},
	{"UTF-8", "not a text in UTF-8; write it in that"},
	{"UTF-16", "not a text in UTF-8; write it in that"},
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// syntaxError says what is wrong with YAML in words, with file and line. The parser leaves the
// line out if it is the first.
func syntaxError(file string, text []byte, err error) error {
	msg, line := kinds.ReplaceAllString(err.Error(), ""), 1
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		msg = msg[len(m[0]):]
	}
	msg = strings.TrimPrefix(msg, "yaml: ")
	if n := tabLine(text, line); n > 0 {
		return located{fmt.Sprintf("%s:%d: not YAML: a tab indents this line; use spaces", file, n), err}
	}
	for _, c := range complaints {
		if strings.Contains(msg, c.says) {
			return located{fmt.Sprintf("%s:%d: not YAML: %s", file, line, c.means), err}
		}
	}
	return located{fmt.Sprintf("%s:%d: not YAML: %s; write it as weft's --print-config does", file, line, msg), err}
}

var tab = regexp.MustCompile(`^ *\t`)

// tabLine returns the first line up to where the parser gave up, and one more, that a tab
// indents; 0 if there is none.
func tabLine(text []byte, gaveUp int) int {
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n > gaveUp+1 {
			return 0
		}
		if tab.Match(line) && len(bytes.TrimSpace(line)) > 0 {
			return n
		}
	}
	return 0
}

// fileError says in words what keeps a file from being read.
func fileError(file string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return located{file + ": there is no such file; check the name", err}
	case errors.Is(err, fs.ErrPermission):
		return located{file + ": permission denied; read it as a user who may", err}
	case errors.Is(err, syscall.EISDIR):
		return located{file + ": is a directory; name a file", err}
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return located{fmt.Sprintf("%s: cannot be read: %v", file, p.Err), err}
	}
	return fmt.Errorf("%s: cannot be read: %w", file, err)
}
