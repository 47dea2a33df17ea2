package kernel

import (
	"errors"
	"fmt"
)

// ErrUplinkGone means that the device that a program was attached to does not exist
// any more, or has left the network namespace. Attach anew when there is one again.
var ErrUplinkGone = errors.New("the device is gone")

// ErrReplaced means that another Attach has put its program in this one's place.
var ErrReplaced = errors.New("another program of weft has taken its place")

// ForeignProgram is another owner's program at a hook where weft has one.
type ForeignProgram struct {
	Hook string `json:"hook"`           // ingress or egress
	By   string `json:"by"`             // TCX, which comes first, or clsact
	Kind string `json:"kind,omitempty"` // of clsact's filter, such as bpf or flower
	ID   uint32 `json:"id,omitempty"`   // the kernel's number, of eBPF

	// Name is the name of the program, or of the filter in clsact. It is empty if there is
	// none, and in TCX if it cannot be read (CAP_SYS_ADMIN or KeepNames).
	Name string `json:"name,omitempty"`

	// Front says whether it runs before weft's program. If so, it may end the chain, and
	// weft's program does not see those packets.
	Front bool `json:"front"`
}

func (p ForeignProgram) String() string {
	what := "filter"
	if p.ID != 0 {
		what = fmt.Sprintf("program %d", p.ID)
	}
	if p.Name != "" {
		what += fmt.Sprintf(" (%s)", p.Name)
	}
	where := "behind"
	if p.Front {
		where = "in front"
	}
	if p.Kind != "" && p.Kind != "bpf" {
		what = p.Kind + " " + what
	}
	return fmt.Sprintf("%s %s, %s of weft's at %s", p.By, what, where, p.Hook)
}
