package fabric

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Extension is a tc program of the user's that runs behind a switch's meter: see
// bpf/weft_extension.h. It is in an object file, or already in the kernel.
type Extension struct {
	// Object is an ELF file with eBPF programs, as clang -target bpf makes it. It begins at
	// the root, and only root or the caller may be able to write it.
	Object  string
	Program string // the name of the program's function in Object

	// Pinned is the path of a program in a bpf file system, instead of Object and Program.
	// Such a program cannot go on with another extension, so it must be the last.
	Pinned string
}

// ExtensionStatus says whether an extension runs.
type ExtensionStatus struct {
	Extension string `json:"extension"`
	Error     string `json:"error,omitempty"` // why it does not run
}

// maxExtensions is how many extensions a switch may have: WEFT_EXTENSIONS.
const maxExtensions = 8

// String names the extension to people.
func (e Extension) String() string {
	if e.Pinned != "" {
		return e.Pinned
	}
	return e.Program + " of " + e.Object
}

// check says what of the extension is wrong, without looking at files.
func (e Extension) check() error {
	switch {
	case e.Pinned != "" && (e.Object != "" || e.Program != ""):
		return errors.New("both a pinned program and one of an object are given; leave one out")
	case e.Pinned == "" && e.Object == "":
		return errors.New("neither an object nor a pinned program is given")
	case e.Pinned == "" && e.Program == "":
		return fmt.Errorf("program is missing: name the function in %s", e.Object)
	case e.Pinned == "" && !filepath.IsAbs(e.Object):
		return fmt.Errorf("object %s: give the path from / on, as the folder that weft is started in may vary", e.Object)
	case e.Pinned != "" && !filepath.IsAbs(e.Pinned):
		return fmt.Errorf("pinned %s: give the path from / on, as the folder that weft is started in may vary", e.Pinned)
	}
	return nil
}

// CheckExtensions checks a list of extensions.
func CheckExtensions(list []Extension) error {
	if len(list) > maxExtensions {
		return fmt.Errorf("%d extensions, at most %d are possible", len(list), maxExtensions)
	}
	for i, e := range list {
		if err := e.check(); err != nil {
			return fmt.Errorf("extension %d: %w", i, err)
		}
		if e.Pinned != "" && i < len(list)-1 {
			return fmt.Errorf("extension %d: %s is pinned, so it must be the last: it cannot go on with the next", i, e.Pinned)
		}
	}
	return nil
}

// verifierWords say what the verifier means, by a part of its message.
var verifierWords = []struct{ part, means string }{
	{"invalid access to packet", "it reads or writes the packet without a check that the packet reaches so far"},
	{"outside of the packet", "it reads or writes the packet without a check that the packet reaches so far"},
	{"map_value_or_null", "it uses a value of a map without a check that the value exists"},
	{"mem_or_null", "it uses memory without a check that it exists"},
	{"infinite loop", "it has a loop that does not end"},
	{"back-edge", "it has a loop whose end cannot be proved"},
	{"program is too large", "it is too long, or has a loop of too many rounds"},
	{"jumps is too complex", "it is too long, or has a loop of too many rounds"},
	{"unreachable insn", "it contains code that is never reached"},
	{"!read_ok", "it uses a value that was never set"},
	{"invalid read from stack off", "it reads a variable that was never set"},
	{"invalid indirect read from stack", "it passes a variable that was never set"},
	{"invalid read from stack R", "it reads outside of its stack of 512 bytes"},
	{"invalid write to stack R", "it writes outside of its stack of 512 bytes"},
	{"combined stack size", "its variables and those of its functions need more than 512 bytes"},
	{"invalid bpf_context access", "it uses a field of the packet's context that is not for tc programs"},
	{"unknown func", "it calls a function that this kernel does not have, or not for tc programs"},
	{"invalid func unknown", "it calls a function that this kernel does not have"},
	{"cannot use helper", "it calls a function that is not for tc programs"},
	{"cannot call GPL-restricted", "it calls a function that only programs under the GPL may call"},
	{"leaks addr as return value", "it returns something other than a number"},
	{"min value is negative", "it uses an index or a length that may be negative"},
	{"unbounded memory access", "it uses an index or a length without an upper bound"},
	{"invalid access to map value", "it reaches beyond a value of a map"},
	{"invalid mem access 'scalar'", "it uses a number as an address"},
	{"invalid mem access 'inv'", "it uses a number as an address"}, // before Linux 5.18
}

// refusal says why the verifier refuses a program, from its log.
func refusal(log []string) string {
	line := ""
	for _, l := range log {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "processed ") && !strings.HasPrefix(l, "verification time") && !strings.HasPrefix(l, "stack depth") {
			line = l
		}
	}
	if line == "" {
		return "the kernel's verifier refuses it and does not say why"
	}
	for _, w := range verifierWords {
		if strings.Contains(line, w.part) {
			return fmt.Sprintf("the kernel's verifier refuses it: %s (%q)", w.means, line)
		}
	}
	return fmt.Sprintf("the kernel's verifier refuses it: %q", line)
}
