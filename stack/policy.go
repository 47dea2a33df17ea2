package stack

import (
	"context"
	"fmt"
	"net/netip"

	"weft/internal/dataplane"
)

// PrefixPolicy gives a Host's traffic to some addresses a policy of its own.
type PrefixPolicy struct {
	Prefix netip.Prefix // of either family, such as 10.1.0.0/16
	Policy string       // one of package policy's names
}

// WithPolicy returns a context for Host.DialContext. A connection dialled with it is
// spread by the named policy, whatever Config.Policy and Config.Policies say, for its
// whole life. Config.PolicyOptions apply. The other end's Host chooses the policy of the
// packets that it sends.
//
// If the name is unknown, the dial fails, and the error lists the names. An
// http.Transport reuses connections: use one Transport for each policy.
//
// If the Device encapsulates (PathDevice), it does so for Config.Policy. The Host
// encapsulates packets of other policies itself. A congestion-aware policy knows only
// what its own connections have measured.
func WithPolicy(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, policyKey{}, name)
}

// PolicyFrom returns the policy that WithPolicy has put into a context; "" for none.
func PolicyFrom(ctx context.Context) string {
	name, _ := ctx.Value(policyKey{}).(string)
	return name
}

type policyKey struct{}

// flowPolicy is a policy as egress numbers it; 0 is none. Netstack hands the owner of a
// socket down with each of its packets, for as long as it sends any: no table of flows
// is needed.
type flowPolicy uint8

// KUID and KGID implement tcpip.PacketOwner.
func (p flowPolicy) KUID() uint32 { return uint32(p) }
func (p flowPolicy) KGID() uint32 { return 0 }

// policyOf returns the policy that a context asks for.
func (h *Host) policyOf(ctx context.Context) (flowPolicy, error) {
	if ctx.Value(policyKey{}) == nil {
		return 0, nil
	}
	n, err := h.egress.Policy(PolicyFrom(ctx))
	if err != nil {
		return 0, fmt.Errorf("WithPolicy: %w", err)
	}
	return flowPolicy(n), nil
}

// goBy gives a socket that has sent nothing yet a policy.
func (s *socket) goBy(p flowPolicy) {
	if p != 0 {
		s.ep.SetOwner(p)
	}
}

// prefixPolicies are Config.Policies as egress takes them.
func (c *Config) prefixPolicies() (all []dataplane.PrefixPolicy) {
	for _, p := range c.Policies {
		all = append(all, dataplane.PrefixPolicy(p))
	}
	return all
}
