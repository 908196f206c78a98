package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/refusal"
)

// Standby is a new member on another host, or at another peer URL, that takes the place of one that is replaced. It
// joins and is promoted before the old one is removed, so that the cluster never has a voter fewer. At the same peer
// URL etcd accepts no new member before the old one is removed.
type Standby struct {
	// Name is the new member's --name, URL its peer URL. For is the member that it replaces, "" for the next one in the
	// plan.
	Name, URL, For string
}

// ParseStandby reads [OLD:]NAME=URL.
func ParseStandby(s string) (Standby, error) {
	name, peer, ok := strings.Cut(s, "=")
	old, own, both := strings.Cut(name, ":")
	if !both {
		old, own = "", name
	}
	u, err := url.Parse(peer)
	if !ok || own == "" || both && old == "" || err != nil || u.Host == "" || u.Scheme != "http" &&
		u.Scheme != "https" {
		return Standby{}, fmt.Errorf("%q is not NAME=PEER_URL or OLD:NAME=PEER_URL, such as "+
			"node4=https://10.0.0.4:2380", s)
	}
	return Standby{Name: own, URL: peer, For: old}, nil
}

// standbys gives the members that are replaced their successors.
func (pr *procedures) standbys() error {
	for _, s := range pr.o.Standby {
		if pr.p.Mode != Live {
			return refusal.New("leave --standby out", "a standby takes a member's place while the cluster runs, and "+
				"this plan is to %s", pr.p.Mode)
		}
		if !pr.p.Cluster.KnowsLearners() {
			return refusal.New("leave --standby out", "a standby joins as a learner, which etcd 3.%d does not know",
				pr.p.Cluster.Minor)
		}
		old, err := pr.replacedBy(s)
		if err != nil {
			return err
		}
		taken := func(m Member) bool {
			return m.Named(s.Name) || m.ServerName() == s.Name || slices.Contains(m.PeerURLs, s.URL)
		}
		if slices.ContainsFunc(pr.p.Members, taken) {
			return refusal.New("give it another name and another peer URL",
				"another member has the name or the peer URL "+
					"of the standby %s=%s", s.Name, s.URL)
		}
		old.Standby = s.Name
		pr.p.Members = append(pr.p.Members, Member{Name: s.Name, PeerURLs: []string{s.URL}, Action: StandIn,
			For:          old.Name,
			Why:          "takes the place of " + old.Name + ", which is removed once this one is a voter",
			NotStartable: "it joins empty"})
	}
	slices.SortStableFunc(pr.p.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// replacedBy finds the member whose place a standby takes.
func (pr *procedures) replacedBy(s Standby) (*Member, error) {
	for i := range pr.p.Members {
		m := &pr.p.Members[i]
		if m.Action == Replace && m.Standby == "" && !m.Learner && (s.For == "" || m.Named(s.For)) {
			return m, nil
		}
	}
	hint := "name members to replace with --replace, or leave --standby out"
	if s.For != "" {
		return nil, refusal.New(hint, "%s is not replaced by this plan, or has a standby already", s.For)
	}
	return nil, refusal.New(hint, "no member is left that the standby %s could take the place of", s.Name)
}

// standIn adds the new member first and removes the old one after that.
func (b *builder) standIn(m *Member) {
	b.bringIn(b.p.Member(m.Standby))
	b.save(m)
	b.add(StepRemove, m)
	b.voters--
	b.add(StepStop, m)
	b.add(StepSetAside, m)
}

// whileFewer describes how many voters are missing during a procedure.
func (b *builder) whileFewer() string {
	var without, with []string
	for _, m := range b.rejoining() {
		switch {
		case m.Learner || m.Action == Join:
		case m.Standby != "":
			with = append(with, m.Name)
		default:
			without = append(without, m.Name)
		}
	}
	var out string
	if len(without) > 0 {
		out = fmt.Sprintf("; there is one voter fewer from the stop of each of %s until it is promoted again, since "+
			"etcd accepts no member at a peer URL that is taken. repair plan --standby NAME=PEER_URL, with another "+
			"host, avoids that",
			strings.Join(without, ", "))
	}
	if len(with) > 0 {
		out += fmt.Sprintf("; there is no voter fewer while %s replaced: the standby is promoted first",
			strings.Join(with, ", ")+" "+isAre(len(with)))
	}
	return out
}
