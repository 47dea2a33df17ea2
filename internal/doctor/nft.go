package doctor

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ParseNFT reads what nft -n -t -j list ruleset prints.
func ParseNFT(text []byte) (all []Chain, err error) {
	var ruleset struct {
		Objects []struct {
			Chain *struct {
				Family, Table, Name, Hook, Policy string
				Dev                               any
				Prio                              int
			}
			Rule *struct {
				Family, Table, Chain string
				Expr                 []map[string]json.RawMessage
			}
		} `json:"nftables"`
	}
	if err := json.Unmarshal(text, &ruleset); err != nil {
		return nil, fmt.Errorf("nft: %w", err)
	}
	at := make(map[[3]string]int)
	for _, o := range ruleset.Objects {
		if c := o.Chain; c != nil {
			var devices []string
			switch dev := c.Dev.(type) {
			case string:
				devices = []string{dev}
			case []any:
				for _, d := range dev {
					if name, ok := d.(string); ok {
						devices = append(devices, name)
					}
				}
			}
			at[[3]string{c.Family, c.Table, c.Name}] = len(all)
			all = append(all, Chain{Family: c.Family, Table: c.Table, Name: c.Name, Hook: c.Hook, Devices: devices, Priority: c.Prio, Drops: c.Policy == "drop"})
		}
	}
	for _, o := range ruleset.Objects {
		if r := o.Rule; r != nil {
			if i, ok := at[[3]string{r.Family, r.Table, r.Chain}]; ok {
				all[i].Rules = append(all[i].Rules, nftRule(r.Expr))
			}
		}
	}
	return all, nil
}

// nftRule reads the expressions of a rule.
func nftRule(exprs []map[string]json.RawMessage) (r Rule) {
	var words []string
	open := false // a statement may have a verdict
	for _, e := range exprs {
		for kind, body := range e {
			switch kind {
			case "accept", "drop", "return", "reject":
				r.Verdict = kind
				words = append(words, kind)
			case "jump", "goto":
				var to struct{ Target string }
				if json.Unmarshal(body, &to) == nil {
					r.Verdict, r.Target = kind, to.Target
					words = append(words, kind+" "+to.Target)
				}
			case "match":
				m, text := nftMatch(body)
				r.Matches = append(r.Matches, m...)
				words = append(words, text)
			case "counter", "log", "comment", "continue", "mangle", "notrack", "ct helper", "ct timeout", "ct expectation", "flow", "secmark", "dup", "last":
				// The packet goes on.
			case "limit", "quota", "ct count", "dynset", "set", "map":
				r.Matches = append(r.Matches, Match{})
				words = append(words, kind+" ...")
			default: // such as vmap, queue, dnat and what is not known yet
				r.Matches = append(r.Matches, Match{})
				open = open || !isXTMatch(kind, body)
				words = append(words, kind+" ...")
			}
		}
	}
	if open && r.Verdict == "" {
		r.Verdict = perhaps
	}
	r.Text = strings.Join(words, " ")
	return r
}

// isXTMatch reports whether an expression is a match of iptables, and no target.
func isXTMatch(kind string, body []byte) bool {
	var xt struct{ Type string }
	return kind == "xt" && json.Unmarshal(body, &xt) == nil && xt.Type == "match"
}

// nftMatch reads a condition, and says it for people.
func nftMatch(body []byte) (all []Match, text string) {
	var e struct {
		Op   string
		Left struct {
			Payload *struct{ Protocol, Field string }
			Meta    *struct{ Key string }
			CT      *struct{ Key string }
		}
		Right any
	}
	if json.Unmarshal(body, &e) != nil {
		return []Match{{}}, "..."
	}
	m := Match{Not: e.Op == "!="}
	known := e.Op == "==" || e.Op == "!=" || e.Op == "in"
	left := "..."
	switch p := e.Left; {
	case p.Payload != nil:
		left = p.Payload.Protocol + " " + p.Payload.Field
		switch {
		case left == "ip protocol" || left == "ip6 nexthdr":
			m.Field = "protocol"
			all = append(all, Match{Field: "family", Names: []string{p.Payload.Protocol}})
		case p.Payload.Protocol == "udp" || p.Payload.Protocol == "tcp" || p.Payload.Protocol == "th":
			if p.Payload.Protocol != "th" {
				n := protocolNumber(p.Payload.Protocol)
				all = append(all, Match{Field: "protocol", Values: []Range{{n, n}}})
			}
			m.Field = p.Payload.Field
		case p.Payload.Protocol == "ip" || p.Payload.Protocol == "ip6":
			all = append(all, Match{Field: "family", Names: []string{p.Payload.Protocol}})
		}
	case p.Meta != nil:
		left = "meta " + p.Meta.Key
		m.Field = map[string]string{"l4proto": "protocol", "nfproto": "family", "iif": "iif", "iifname": "iif", "oif": "oif", "oifname": "oif"}[p.Meta.Key]
	case p.CT != nil:
		left = "ct " + p.CT.Key
		if p.CT.Key == "state" {
			m.Field = "state"
		}
	}
	ok := m.values(e.Right)
	if !known || !ok {
		m.Field = ""
	}
	op := ""
	if m.Not {
		op = " !="
	}
	return append(all, m), fmt.Sprintf("%s%s %s", left, op, nftText(e.Right))
}

// values reads what a property is compared with, and reports whether all of it is understood.
func (m *Match) values(v any) bool {
	switch v := v.(type) {
	case float64:
		name := ""
		switch m.Field {
		case "state":
			name = map[float64]string{1: "invalid", 2: "established", 4: "related", 8: "new", 64: "untracked"}[v]
		case "family":
			name = map[float64]string{2: "ip", 10: "ip6"}[v]
		default:
			m.Values = append(m.Values, Range{int(v), int(v)})
			return true
		}
		m.Names = append(m.Names, name)
		return name != ""
	case string:
		if strings.HasPrefix(v, "@") { // a set of that name, whose elements are not known
			return false
		}
		m.Names = append(m.Names, map[string]string{"ipv4": "ip", "ipv6": "ip6"}[v])
		if m.Names[len(m.Names)-1] == "" {
			m.Names[len(m.Names)-1] = v
		}
		if m.Field != "protocol" && m.Field != "dport" && m.Field != "sport" {
			return true
		}
		n, err := strconv.Atoi(v)
		if err != nil && m.Field == "protocol" {
			n = protocolNumber(v)
		} else if err != nil {
			n = -1
		}
		m.Values = append(m.Values, Range{n, n})
		return n >= 0
	case []any:
		for _, e := range v {
			if !m.values(e) {
				return false
			}
		}
		return true
	case map[string]any:
		if set, ok := v["set"]; ok {
			return m.values(set)
		}
		if r, ok := v["range"].([]any); ok && len(r) == 2 {
			first, ok1 := r[0].(float64)
			last, ok2 := r[1].(float64)
			m.Values = append(m.Values, Range{int(first), int(last)})
			return ok1 && ok2
		}
	}
	return false
}

// protocolNumber is that of a protocol's name in /etc/protocols, -1 if it is none of interest.
func protocolNumber(name string) int {
	if n, ok := map[string]int{"icmp": 1, "ipencap": protoIPIP, "ipip": protoIPIP, "tcp": 6, "udp": protoUDP, "ipv6": protoIPv6, "gre": 47, "esp": 50, "ah": 51,
		"ipv6-icmp": 58, "icmpv6": 58, "ospf": 89, "vrrp": 112, "sctp": 132, "udplite": 136}[name]; ok {
		return n
	}
	return -1
}

// nftText is a value for people.
func nftText(v any) string {
	switch v := v.(type) {
	case map[string]any:
		if set, ok := v["set"].([]any); ok {
			return nftText(set)
		}
		if p, ok := v["prefix"].(map[string]any); ok {
			return fmt.Sprintf("%v/%v", p["addr"], p["len"])
		}
		if r, ok := v["range"].([]any); ok && len(r) == 2 {
			return fmt.Sprintf("%v-%v", r[0], r[1])
		}
		return "..."
	case []any:
		var words []string
		for _, e := range v {
			words = append(words, nftText(e))
		}
		return "{" + strings.Join(words, ", ") + "}"
	}
	return fmt.Sprint(v)
}
