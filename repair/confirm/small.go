package confirm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/redact"
	"github.com/etcd-medic/etcd-medic/release"
)

// table is a small bucket as rows of text. Rows are equal exactly if their content is.
type table map[string]string

// smallState is everything in a database except its keys.
type smallState struct {
	auth    dumpdb.Auth
	leases  []dumpdb.Lease
	alarms  []dumpdb.Alarm
	members []dumpdb.Member
	removed []dumpdb.ID
	cluster dumpdb.Cluster
	meta    dumpdb.MetaBucket
}

// smallOf returns the state of a source.
func smallOf(m *evidence.Member) *smallState {
	d := m.DB
	return &smallState{d.Auth, d.Leases, d.Alarms, d.Members, d.Removed, d.Cluster, d.Meta}
}

// readSmall reads the state of the server's database.
func readSmall(db *dumpdb.DB) (s *smallState, err error) {
	s = &smallState{}
	for _, read := range []func() error{
		func() (err error) { s.auth, err = db.Auth(); return },
		func() (err error) { s.leases, err = db.Leases(); return },
		func() (err error) { s.alarms, err = db.Alarms(); return },
		func() (err error) { s.members, err = db.Members(); return },
		func() (err error) { s.removed, err = db.RemovedMembers(); return },
		func() (err error) { s.cluster, err = db.Cluster(); return },
		func() (err error) { s.meta, err = db.MetaBucket(); return },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	s.members = slices.DeleteFunc(s.members, func(m dumpdb.Member) bool { return scratchMember(uint64(m.ID)) })
	return s, nil
}

// smallRules say which parts of the small buckets can be compared.
type smallRules struct {
	// minor is the 3.x minor version that wrote the source.
	minor int
	// plain are users whose password gets a different salt on every server.
	plain map[string]bool
}

// compareSmall compares the small buckets of a source with the server's; want is the server's state.
func (c *contents) compareSmall(own, want *smallState, r smallRules) {
	c.table("auth", authTable(own), authTable(want))
	c.table("authUsers", userTable(own, r, c.key), userTable(want, r, c.key))
	c.table("authRoles", roleTable(own), roleTable(want))
	c.leases(own, want)
	c.table("alarm", alarmTable(own), alarmTable(want))
	before := c.total
	c.table("members", memberTable(own, r), memberTable(want, r))
	c.table("members_removed", removedTable(own), removedTable(want))
	c.table("cluster", clusterTable(own), clusterTable(want))
	if release.AnyOf(r.minor).Has(release.MembersFromDB).Certain() || c.total == before {
		return
	}
	// Up to 3.5 a server reads its members from the v2 store, and releases differ in what they write to these buckets.
	for _, name := range []string{"members", "members_removed", "cluster"} {
		if c.small[name] > 0 {
			c.leftOut = append(c.leftOut, fmt.Sprintf("%s: %d rows differ; releases up to 3.5 keep the members in "+
				"the v2 store and write this bucket differently", name, c.small[name]))
			c.total -= c.small[name]
			delete(c.small, name)
			c.list = slices.DeleteFunc(c.list, func(d compare.ConfirmDifference) bool { return d.Bucket == name })
		}
	}
}

func (c *contents) row(bucket, key, observed, expected string) {
	if c.small == nil {
		c.small = map[string]int{}
	}
	c.small[bucket]++
	c.differ(compare.ConfirmDifference{Bucket: bucket, Key: check.Bytes(key), Observed: observed, Expected: expected})
}

func (c *contents) table(bucket string, own, want table) {
	for _, n := range diff.RowKeys(own, want) {
		o, inOwn := own[n]
		w, inWant := want[n]
		switch {
		case !inOwn:
			o = "no row"
		case !inWant:
			w = "no row"
		case o == w:
			continue
		}
		c.row(bucket, n, o, w)
	}
}

// authTable returns the auth bucket. A server without a stored auth revision stores 1 when it starts
// (server/auth/store.go NewAuthStore).
func authTable(s *smallState) table {
	return table{"authEnabled": fmt.Sprint(s.auth.Enabled), "authRevision": fmt.Sprint(max(s.auth.Revision, 1))}
}

// userTable has a digest of the password if it comes from the log, as it does since 3.5.
func userTable(s *smallState, r smallRules, k *redact.Key) table {
	t := table{}
	for _, u := range s.auth.Users {
		text := "roles [" + strings.Join(u.Roles, " ") + "]"
		if u.NoPassword {
			text += ", no password"
		}
		if release.AnyOf(r.minor).Has(release.PasswordHashInRequest).Certain() && !r.plain[u.Name] {
			text += ", password hash " + k.Digest(u.Password)
		}
		t[u.Name] = text
	}
	return t
}

func roleTable(s *smallState) table {
	t := table{}
	for _, role := range s.auth.Roles {
		var perms []string
		for _, p := range role.Perms {
			perms = append(perms, p.String())
		}
		slices.Sort(perms)
		t[role.Name] = strings.Join(perms, ", ")
	}
	return t
}

func alarmTable(s *smallState) table {
	t := table{}
	for _, a := range s.alarms {
		t[a.MemberID.String()+" "+evidence.AlarmName(a.Type)] = "raised"
	}
	return t
}

// memberTable has names and client URLs since 3.6, where a server starts with this bucket.
func memberTable(s *smallState, r smallRules) table {
	t := table{}
	for _, m := range s.members {
		urls := slices.Sorted(slices.Values(m.PeerURLs))
		text := "peer URLs " + strings.Join(urls, ",")
		if m.IsLearner {
			text += ", learner"
		}
		if release.AnyOf(r.minor).Has(release.MembersFromDB).Certain() {
			text += ", name " + m.Name + ", client URLs " + strings.Join(slices.Sorted(slices.Values(m.ClientURLs)),
				",")
		}
		t[m.ID.String()] = text
	}
	return t
}

func removedTable(s *smallState) table {
	t := table{}
	for _, id := range s.removed {
		t[id.String()] = "removed"
	}
	return t
}

func clusterTable(s *smallState) table {
	t := table{"clusterVersion": s.cluster.Version}
	if s.cluster.DowngradeEnabled {
		t["downgrade"] = s.cluster.DowngradeTarget
	}
	return t
}

// maxRaisedTTL bounds the TTL in seconds to which a server raises lower ones: 1.5 times the election timeout, which is
// at most 50 s (server/etcdserver/server.go minTTL, server/embed/config.go maxElectionMs).
const maxRaisedTTL = 75

// leases compares which leases exist, and their TTLs as far as they come from the log. Servers raise a TTL to their
// minimum, which depends on flags, so a higher TTL up to that minimum is ignored.
func (c *contents) leases(own, want *smallState) {
	have := map[dumpdb.ID]int64{}
	for _, l := range own.leases {
		have[l.ID] = l.TTL
	}
	raised := 0
	for _, l := range want.leases {
		ttl, ok := have[l.ID]
		delete(have, l.ID)
		switch {
		case !ok:
			c.row("lease", l.ID.String(), "no row", fmt.Sprintf("TTL %d s", l.TTL))
		case ttl == l.TTL || ttl == l.TTL-1 && l.TTL == scratchMinTTL:
		case ttl > l.TTL && ttl <= maxRaisedTTL:
			raised++
		default:
			c.row("lease", l.ID.String(), fmt.Sprintf("TTL %d s", ttl), fmt.Sprintf("TTL %d s", l.TTL))
		}
	}
	if raised > 0 {
		c.leftOut = append(c.leftOut, fmt.Sprintf("lease: %d TTLs are higher than the log says, as servers with a "+
			"longer election timeout store them", raised))
	}
	for _, id := range slices.Sorted(maps.Keys(have)) {
		c.row("lease", id.String(), fmt.Sprintf("TTL %d s", have[id]), "no row")
	}
}

// scratchMinTTL is the minimum of the server in the sandbox, with the default election timeout of one second.
const scratchMinTTL = 2
