package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

var backupBuckets = described(Check{
	ID:  B03,
	Run: func(in *Input) Result { return judgeBackups(in.Members, judgeBackupBuckets) },
})

// everyBucket is made by each server at its first start (server/storage/schema, server/auth, server/lease,
// server/etcdserver/api).
var everyBucket = []string{"key", "meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members",
	"members_removed", "cluster"}

func judgeBackupBuckets(m *evidence.Member) []Finding {
	var fs []Finding
	if m.RootUnreadable() {
		return []Finding{backupFinding(m, KindBucketUnreachable, Error, "no bucket can be reached",
			"the damage of the pages hides all of "+
				"them; see D02",
			Evidence{Observed: "none", Expected: "the buckets of a server", Show: showDB(m)})}
	}
	for _, want := range everyBucket {
		if slices.ContainsFunc(m.DB.Buckets, func(b dumpdb.Bucket) bool { return b.Name == want }) {
			continue
		}
		fs = append(fs, backupFinding(m, KindBucketMissing, Error, "there is no bucket "+want,
			"every server makes it at its first start, so its rows are lost; "+
				"a server that starts on this file makes an empty one",
			Evidence{Bucket: want, Observed: "absent", Expected: "present", Show: showDB(m)}))
	}
	return fs
}

var backupMembers = described(Check{
	ID:  B04,
	Run: func(in *Input) Result { return judgeBackups(in.Members, judgeBackupMembers) },
})

func judgeBackupMembers(m *evidence.Member) []Finding {
	var fs []Finding
	odd := func(key, title, observed, expected string) {
		fs = append(fs, backupFinding(m, KindMemberListOdd, Warning, title, "a restore writes a new member list, so "+
			"the keys are not "+
			"touched by this",
			Evidence{Bucket: "members", Key: Bytes(key), Observed: observed, Expected: expected,
				Show: showDB(m, "members")}))
	}
	if len(m.DB.Members) == 0 && !m.RootUnreadable() {
		odd("", "the member list is empty", "no rows", "one row per member")
	}
	names, urls := map[string]dumpdb.ID{}, map[string]dumpdb.ID{}
	for _, v := range m.DB.Members {
		id := v.ID.String()
		if len(v.PeerURLs) == 0 {
			odd(id, "member "+id+" has no peer URL", "none", "one or more")
		}
		if slices.Contains(m.DB.Removed, v.ID) {
			odd(id, "member "+id+" is listed and removed at once", "in members and members_removed", "in one of them")
		}
		if other, ok := names[v.Name]; ok && v.Name != "" {
			odd(id, fmt.Sprintf("members %s and %s share the name %s", other, id, v.Name), v.Name, "a unique name")
		}
		names[v.Name] = v.ID
		for _, u := range v.PeerURLs {
			if other, ok := urls[u]; ok {
				odd(id, fmt.Sprintf("members %s and %s share the peer URL %s", other, id, u), u,
					"a unique peer URL")
			}
			urls[u] = v.ID
		}
	}
	return fs
}

var backupAuth = described(Check{
	ID:  B05,
	Run: runBackupAuth,
})

func runBackupAuth(in *Input) Result {
	r := judgeBackups(in.Members, judgeBackupAuth)
	for _, m := range in.Members.backups() {
		if m.DB.Handle != nil && authDamaged(m) {
			return outcome(r.Findings, m.Label()+": part of the auth buckets cannot be read")
		}
	}
	return r
}

func judgeBackupAuth(m *evidence.Member) []Finding {
	a := &m.DB.Auth
	var fs []Finding
	bad := func(sev Severity, bucket, key, title, observed, expected string) {
		fs = append(fs, backupFinding(m, KindBackupAuthBroken, sev, title, "auth of the restored cluster would not "+
			"work as it did",
			Evidence{Bucket: bucket, Key: Bytes(key), Observed: observed, Expected: expected, Show: showDB(m, bucket)}))
	}
	hidden := authDamaged(m)               // then a row that is not there proves nothing
	roles := map[string]bool{"root": true} // granting role root needs no row of it
	for _, r := range a.Roles {
		roles[r.Name] = true
		for _, p := range r.Perms {
			if p.Type < 0 || p.Type > 2 || len(p.RangeEnd) > 0 && string(p.RangeEnd) != "\x00" &&
				string(p.RangeEnd) <= string(p.Key) {
				bad(Warning, "authRoles", r.Name, fmt.Sprintf("role %s has a permission that is not a range", r.Name),
					p.String(), "a key, or a range whose end is after its key")
			}
		}
	}
	root := false
	for _, u := range a.Users {
		root = root || u.Name == "root" && slices.Contains(u.Roles, "root")
		if !slices.IsSorted(u.Roles) {
			bad(Error, "authUsers", u.Name, fmt.Sprintf("the roles of user %s are not sorted", u.Name),
				strings.Join(u.Roles, " "), "ascending order")
		}
		for _, r := range u.Roles {
			if !roles[r] && !hidden {
				bad(Error, "authUsers", u.Name, fmt.Sprintf("user %s has the role %s, which does not exist", u.Name, r),
					r, "a role of bucket authRoles")
			}
		}
	}
	if hidden {
		return fs
	}
	if a.Enabled && !root {
		bad(Error, "auth", "authEnabled", "auth is enabled and no user root has the role root", "no root",
			"user root with role root")
	}
	if want := expectedAuthRevision(a); want != "" {
		bad(Error, "auth", "authRevision", "the auth revision is missing or too low for the users",
			strconv.FormatUint(a.Revision, 10), want)
	}
	return fs
}

var backupVersions = described(Check{
	ID:  B06,
	Run: func(in *Input) Result { return judgeBackups(in.Members, judgeBackupVersions) },
})

func judgeBackupVersions(m *evidence.Member) []Finding {
	meta, c := &m.DB.Meta, &m.DB.Cluster
	var fs []Finding
	bad := func(bucket, key, title, observed, expected string) {
		fs = append(fs, backupFinding(m, KindBackupVersionWrong, Error, title, "no server writes such a mark; a "+
			"server that starts on it "+
			"stops at its version check",
			Evidence{Bucket: bucket, Key: Bytes(key), Observed: observed, Expected: expected, Show: showDB(m, bucket)}))
	}
	if v := meta.StorageVersion; v != "" {
		if !release.Of(v).Has(release.StorageVersion).Certain() {
			bad("meta", "storageVersion", fmt.Sprintf("the storage version %q is none", v), v, "3.6.0 or later")
		}
		if meta.Term == nil {
			bad("meta", "term", "there is a storage version and no term", "absent", "present, as storageVersion "+v+
				" says 3.6 or later")
		}
	}
	if v := c.Version; v != "" {
		if _, ok := evidence.MinorOf(v); !ok {
			bad("cluster", "clusterVersion", fmt.Sprintf("the cluster version %q is none", v), v,
				"a version such as 3.5.0")
		}
	}
	return fs
}

var backupRevisions = described(Check{
	ID:  B07,
	Run: func(in *Input) Result { return judgeBackups(in.Members, judgeBackupRevisions) },
})

func judgeBackupRevisions(m *evidence.Member) []Finding {
	meta, kv := &m.DB.Meta, m.DB.KV
	var fs []Finding
	bad := func(sev Severity, key, title, observed, expected string) {
		fs = append(fs, backupFinding(m, KindBackupMarksWrong, sev, title, "revision and compact revision of the "+
			"restored cluster follow "+
			"from these marks",
			Evidence{Bucket: "meta", Key: Bytes(key), Observed: observed, Expected: expected, Show: showDB(m, "meta")}))
	}
	s, f := meta.ScheduledCompact, meta.FinishedCompact
	if f != nil && (s == nil || f.Main > s.Main) {
		bad(Error, "finishedCompactRev", "a compaction is finished that was not scheduled", f.String(),
			"at most the scheduled one")
	}
	if kv == nil || m.DB.KVDamaged {
		return fs
	}
	// Older servers could delete the newest records and stop before they stored that the compaction is done.
	if s != nil && kv.Revisions > 0 && s.Main > kv.LastRev.Main {
		bad(Warning, "scheduledCompactRev", "the compact revision is above the last record", s.String(),
			fmt.Sprintf("at most %s", kv.LastRev))
	}
	if s != nil && kv.Revisions == 0 {
		bad(Warning, "scheduledCompactRev", "bucket key is empty although revisions were compacted", "no record",
			fmt.Sprintf("a record, unless every key was deleted up to revision %d", s.Main))
	}
	if kv.Revisions > 0 && meta.ConsistentIndex == nil {
		bad(Warning, "consistent_index", "there are records and no consistent index", "absent",
			"the index of the last applied entry")
	}
	return fs
}
