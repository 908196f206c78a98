package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// smallBucket is a bucket with the function that returns its rows.
type smallBucket struct {
	name string
	rows rowsFunc
}

// smallBuckets are all buckets except key, and meta, whose rows differ between healthy members.
var smallBuckets = []smallBucket{
	{"auth", authRows},
	{"authUsers", userRows},
	{"authRoles", roleRows},
	{"lease", leaseRows},
	{"alarm", alarmRows},
	{"members", memberRows},
	{"members_removed", removedRows},
	{"cluster", clusterRows},
}

// SmallRows returns the rows of a small bucket as text, by name; ok is false if the bucket is not small or partly
// unreadable.
func SmallRows(m *evidence.Member, bucket string) (rows map[string]string, ok bool) {
	if !m.HasDB() || slices.ContainsFunc(m.DB.Damage,
		func(d *dumpdb.DamageError) bool { return d.Bucket == bucket || d.Bucket == "" }) {
		return nil, false
	}
	for _, b := range smallBuckets {
		if b.name == bucket {
			return b.rows(m), true
		}
	}
	return nil, false
}

func authRows(m *evidence.Member) map[string]string {
	a := &m.DB.Auth
	return map[string]string{"authEnabled": fmt.Sprint(a.Enabled), "authRevision": fmt.Sprint(a.Revision)}
}

// userRows omits the password, which is compared separately (see passwords).
func userRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, u := range m.DB.Auth.Users {
		s := "roles [" + strings.Join(u.Roles, " ") + "]"
		if u.NoPassword {
			s += " no password"
		}
		out[u.Name] = s
	}
	return out
}

func roleRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, r := range m.DB.Auth.Roles {
		var ps []string
		for _, p := range r.Perms {
			ps = append(ps, p.String())
		}
		slices.Sort(ps)
		out[r.Name] = strings.Join(ps, ", ")
	}
	return out
}

func leaseRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, l := range m.DB.Leases {
		out[l.ID.String()] = "granted"
	}
	return out
}

func alarmRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, a := range m.DB.Alarms {
		out[a.MemberID.String()+" "+evidence.AlarmName(a.Type)] = "raised"
	}
	return out
}

// memberRows compares addresses and the learner flag. Names and client URLs may lag and are compared separately.
func memberRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, v := range m.DB.Members {
		urls := slices.Clone(v.PeerURLs)
		slices.Sort(urls)
		s := "peer URLs " + strings.Join(urls, ",")
		if v.IsLearner {
			s += " learner"
		}
		out[v.ID.String()] = s
	}
	return out
}

func removedRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, id := range m.DB.Removed {
		out[id.String()] = "removed"
	}
	return out
}

func clusterRows(m *evidence.Member) map[string]string {
	out := map[string]string{"clusterVersion": m.DB.Cluster.Version}
	if m.DB.Cluster.DowngradeEnabled {
		out["downgrade"] = m.DB.Cluster.DowngradeTarget
	}
	return out
}

// small compares one small bucket row by row.
func (r *rowComparer) small(sb smallBucket) Bucket {
	b := Bucket{Name: sb.name, Only: make([]int, len(r.Members))}
	take := r.whole(sb.name)
	if len(take) < 2 {
		b.Reason = r.tooFew()
		return b
	}
	r.byRow(&b, take, sb.rows)
	return b
}

// whole returns the members whose rows of the bucket can all be read. Rows on a damaged page are neither equal nor
// different.
func (r *rowComparer) whole(bucket string) []int {
	return slices.DeleteFunc(r.taking(), func(i int) bool {
		return slices.ContainsFunc(r.Members[i].DB.Damage,
			func(d *dumpdb.DamageError) bool { return d.Bucket == bucket })
	})
}
