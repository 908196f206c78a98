package confirm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
)

// Plan says whether a server can execute the log, from which base to which indexes, and what cannot be compared. Making
// a plan starts and writes nothing.
type Plan struct {
	// Reason says why nothing is possible; then the rest is not set.
	Reason string
	Base   *Base
	// Need is what a server must be able to open. Minor is the 3.x minor version that wrote the sources, 0 if unknown.
	Need  node.Need
	Minor int
	// Targets are by source, in their order.
	Targets []Target
	// Stops are the indexes at which the server's content is compared, ascending.
	Stops     []uint64
	ClusterID uint64
	// Notes are remarks, each one sentence.
	Notes []string
	logs  []*evidence.Member
	sv    *survey
}

// Target is one source and the index at which its database is compared.
type Target struct {
	Member *evidence.Member
	// Reason says why it cannot be compared, "" if it can.
	Reason string
	// Index is the last entry certainly in its database, Late the last that may be: up to 3.4 only key writes move the
	// consistent index.
	Index, Late uint64
}

// NewPlan makes the plan for opened sources of one cluster.
func NewPlan(ctx context.Context, members []*evidence.Member) (*Plan, error) {
	p := &Plan{}
	for _, m := range members {
		p.Targets = append(p.Targets, Target{Member: m})
		if m.HasLog() {
			p.logs = append(p.logs, m)
			p.ClusterID = uint64(m.ClusterID)
		}
		p.Minor = max(p.Minor, m.Version.Minor)
	}
	if len(p.logs) == 0 {
		p.Reason = "no source brings a log"
		return p, nil
	}
	var err error
	if p.sv, err = surveyLogs(ctx, p.logs); err != nil {
		return nil, err
	}
	if len(p.sv.spans) == 0 {
		p.Reason = "no entry of the logs can be read"
		return p, nil
	}
	if p.Minor == 0 && len(p.sv.minors) > 0 {
		p.Minor = slices.Max(p.sv.minors)
	}
	if err := p.choose(ctx, members); err != nil || p.Reason != "" {
		return p, err
	}
	p.need(members)
	p.stops()
	return p, nil
}

// choose selects the base from which most members can be compared; of several, it selects the base
// that leaves most of the log to the server.
func (p *Plan) choose(ctx context.Context, members []*evidence.Member) error {
	found, why := bases(ctx, members, p.sv)
	slices.SortStableFunc(found, func(a, b *Base) int {
		if d := cmp.Compare(preference(a), preference(b)); d != 0 {
			return d
		}
		if d := p.reached(b) - p.reached(a); d != 0 {
			return d
		}
		return cmp.Compare(a.Index, b.Index)
	})
	for _, b := range found {
		if p.Base != nil || p.reached(b) == 0 {
			b.close()
			continue
		}
		if b.Kind != NewCluster {
			if err := anchored(ctx, b, p.logs); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				why = append(why, fmt.Sprintf("%s cannot be the base: %v", b.Source, err))
				b.close()
				continue
			}
		}
		p.Base = b
	}
	if p.Base == nil {
		p.Reason = p.noBase(len(found) > 0, why)
	}
	return ctx.Err()
}

// preference sorts the databases of members after the other bases.
func preference(b *Base) int {
	if b.Kind == MemberDB {
		return 1
	}
	return 0
}

func (p *Plan) noBase(any bool, why []string) string {
	first := p.sv.spans[0].first
	s := fmt.Sprintf("the logs begin with entry %d, and no backup, received snapshot or older database among the "+
		"sources is at an index from which they continue", first)
	switch {
	case any && len(why) == 0:
		s = "no member's database is newer than a base that the log continues from"
	case first == 1 && len(why) > 0:
		return strings.Join(why, "; ")
	}
	if len(why) > 0 {
		s += " (" + strings.Join(why, "; ") + ")"
	}
	return s
}

// reached counts the sources that can be compared from a base.
func (p *Plan) reached(b *Base) (n int) {
	for i := range p.Targets {
		if p.target(b, i).Reason == "" {
			n++
		}
	}
	return n
}

// target reports whether a source's database can be compared with the server's result from a base.
func (p *Plan) target(b *Base, i int) Target {
	m := p.Targets[i].Member
	t := Target{Member: m, Index: m.AppliedMin, Late: m.AppliedMin}
	end := p.sv.reach(b.Index)
	switch {
	case b.Owner == i:
		t.Reason = "it is the base that the server starts from"
	case !m.HasDB():
		t.Reason = "it has no database that opens"
	case m.DB.KVDamaged || m.RootUnreadable():
		t.Reason = "parts of its database cannot be read"
	case t.Index == 0:
		t.Reason = "its database has no consistent index"
	case m.IndexFrozen():
		t.Reason = "its consistent index does not say what it has applied"
	case t.Index <= b.Index:
		t.Reason = fmt.Sprintf("its database is at index %d, not after the base at %d", t.Index, b.Index)
	case t.Index > end && end == p.sv.last():
		t.Reason = fmt.Sprintf("its database is at index %d, and the logs end with entry %d", t.Index, end)
	case t.Index > end:
		t.Reason = fmt.Sprintf("no log holds entry %d, which its database at index %d has applied", end+1, t.Index)
	default:
		t.Reason = p.sv.brokenBetween(b.Index, t.Index)
	}
	late := m.AppliedMax
	// Up to 3.4; without its own log, how far it came is unknown.
	if !m.HasLog() && t.Reason == "" && m.DB.Meta.Term == nil {
		late = end
	}
	if t.Reason == "" && late > m.AppliedMin {
		t.Late = min(late, end)
		for t.Late > t.Index && p.sv.brokenBetween(t.Index, t.Late) != "" {
			t.Late = t.Index
		}
	}
	return t
}

func (s *survey) last() uint64 { return s.spans[len(s.spans)-1].last }

// stops sets where each source is compared.
func (p *Plan) stops() {
	for i := range p.Targets {
		p.Targets[i] = p.target(p.Base, i)
		if t := &p.Targets[i]; t.Reason == "" {
			p.Stops = append(p.Stops, t.Index, t.Late)
		}
	}
	slices.Sort(p.Stops)
	p.Stops = slices.Compact(p.Stops)
}

// need sets which servers can open the base and the log. v2 requests that newer servers do not know are translated or
// left out.
func (p *Plan) need(members []*evidence.Member) {
	raise := func(v *node.Version, text string) {
		if got, err := node.ParseVersion(text); err == nil && got.AtLeast(*v) {
			*v = got
		}
	}
	for _, m := range members {
		if m.HasDB() {
			raise(&p.Need.Cluster, m.DB.Cluster.Version)
			raise(&p.Need.Storage, m.DB.Meta.StorageVersion)
		}
	}
	if p.Base.db != nil {
		raise(&p.Need.Cluster, p.Base.ClusterVersion)
		raise(&p.Need.Storage, p.Base.needs.StorageVersion)
	}
	for _, minor := range p.sv.minors {
		raise(&p.Need.Cluster, fmt.Sprintf("3.%d.0", minor))
	}
	if !p.Need.Version().Known() && p.Minor > 0 {
		p.Need.Cluster = node.Version{Major: 3, Minor: p.Minor}
	}
	if p.sv.v2 > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d v2 requests are left out: they write nothing that is compared",
			p.sv.v2))
	}
}

// peers returns all peer URLs in the base and the log.
func (p *Plan) peers() []string {
	out := slices.Clone(p.sv.urls)
	for _, m := range p.Base.Members {
		out = append(out, m.PeerURLs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
