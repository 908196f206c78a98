package run

import (
	"context"
	"errors"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// server chooses what runs the copies. asTheyAre is true when servers start on copies of the sources with their bucket
// members unchanged.
func (s *session) server(ctx context.Context, set *evidence.Set, asTheyAre bool) (node.Server, error) {
	var members []*evidence.Member
	for _, m := range set.Members {
		if m.DB != nil && m.DB.Handle != nil && m.ClusterID == s.plan.Cluster.ID {
			members = append(members, m)
		}
	}
	need, err := copies.NeedOf(ctx, members, func(m *evidence.Member) bool { return s.started(m.Label()) })
	if err != nil {
		return node.Server{}, err
	}
	if minor := s.plan.Cluster.Minor; len(members) == 0 && minor > 0 { // no database shows the version
		need.Written = node.Version{Major: 3, Minor: minor}
	}
	need.BucketOnlyMembers = asTheyAre && s.plan.HasBucketOnlyMembers()
	server, err := node.Choose(ctx, need, s.o.EtcdBinary)
	if err != nil {
		return server, s.withoutServer(err)
	}
	s.out.Raises = need.Raises(server.Version)
	return server, nil
}

// withoutServer adds to a refusal what can be done with the available servers.
func (s *session) withoutServer(err error) error {
	var refused *refusal.Error
	clone := s.plan.Way(plan.Clone)
	if !s.plan.HasBucketOnlyMembers() || clone == nil || !clone.Possible || !errors.As(err, &refused) {
		return err
	}
	more := *refused
	more.Hint += "; --mode clone needs none: new databases carry raft's own list"
	return &more
}

// mendsRows refuses a server that does not mend the rows for which the procedure restarts members.
func (s *session) mendsRows(v node.Version, way *plan.Way) error {
	rule := s.plan.RestartRule()
	if rule == nil || !slices.ContainsFunc(way.Steps, func(x plan.Step) bool { return x.Kind == plan.StepStart }) ||
		!v.Release().Has(rule).Excluded() {
		return nil
	}
	return refusal.New("name a server that does with --etcd-binary: "+s.plan.RestartOn(),
		"etcd %s does not mend bucket members when it starts, and the plan has members restarted for that", v)
}

// started reports whether a server is started on a copy of that source.
func (s *session) started(label string) bool {
	m := s.bySource(label)
	return m != nil && m.Startable
}

// upgrade refuses to publish data dirs that the cluster's own servers cannot open any more.
func (s *session) upgrade(throwAway bool) error {
	if throwAway || s.o.AllowUpgrade || s.out.Raises == "" {
		return nil
	}
	return refusal.New("name the cluster's own server with --etcd-binary, use --mode clone, which leaves versions as "+
		"they are, or accept it with --allow-upgrade", "%s", s.out.Raises)
}

// need is how much room the copies of all members, their successors and a backup take at most.
func (s *session) need(set *evidence.Set) int64 {
	var sources, db int64
	for _, m := range set.Members {
		if s.started(m.Label()) {
			sources += m.Source.Manifest.Bytes
		}
		if m.Label() == s.plan.Best.Name && m.DB != nil && m.DB.Handle != nil {
			db = m.DB.Handle.Size()
		}
	}
	rejoin := 0
	for i := range s.plan.Members {
		if p := &s.plan.Members[i]; p.Rejoins() || p.Action == plan.StandIn {
			rejoin++
		}
	}
	return plan.SandboxNeeds(sources, db, rejoin)
}

// sandboxFillers is how many proposals make a server in the sandbox drop the start of its in-memory log: a little more
// than a hundred entries with its flags. Servers without a flag for the entries after a snapshot keep 5,000 of them.
func sandboxFillers(v node.Version) int {
	if !v.CanSetCatchup() {
		return 5_000 + 250
	}
	return 250
}
