package overview

import (
	"fmt"
	"slices"
	"strings"
)

// Behind is a prefix of containers or virtual machines whose packets a host forwards.
type Behind struct {
	Prefix string `json:"prefix"`
	Host   string `json:"host"`
	Rack   string `json:"rack"`
	Own    bool   `json:"own"`
}

// forwards is what a host has forwarded for what is behind it, and which prefixes are behind
// hosts.
func (h *Host) forwards() string {
	var sent, where []string
	own, others := 0, 0
	var hosts []string
	for _, b := range h.Behind {
		if b.Own {
			own++
		} else if others++; !slices.Contains(hosts, b.Host) {
			hosts = append(hosts, b.Host)
		}
	}
	if o := h.Offload; o != nil && o.Forwarded > 0 {
		sent = append(sent, count(int(o.Forwarded), "connection", "connections"))
	}
	if o := h.Offload; o != nil && o.ForwardedLong > 0 {
		sent = append(sent, count(int(o.ForwardedLong), "packet", "packets")+" too long")
	}
	if own > 0 {
		where = append(where, count(own, "prefix", "prefixes")+" here")
	}
	switch others += h.BehindUnnamed; {
	case h.BehindUnnamed > 0:
		where = append(where, fmt.Sprintf("%d behind others", others))
	case others > 0:
		where = append(where, fmt.Sprintf("%d behind %s", others, count(len(hosts), "other", "others")))
	}
	if len(sent) == 0 && len(where) == 0 {
		return ""
	}
	if len(sent) == 0 {
		sent = []string{"nothing"}
	}
	text := "forwarded: " + strings.Join(sent, ", ")
	if len(where) > 0 {
		text += "; " + strings.Join(where, ", ")
	}
	return text
}

// behindProblems tells which prefixes are behind hosts that the fabric does not have.
func (h *Host) behindProblems() []Problem {
	var lost, hosts []string
	for _, b := range h.Behind {
		if b.Rack == "" {
			lost = append(lost, b.Prefix)
			if !slices.Contains(hosts, b.Host) {
				hosts = append(hosts, b.Host)
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []Problem{{Note: true, What: fmt.Sprintf("packets to %s go plain: no %s in the fabric as it is known", list("prefix", "prefixes", lost), list("host", "hosts", hosts)),
		Do: "see behind in the configuration"}}
}
