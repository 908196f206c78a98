package backup

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// layered is a report of a backup, as far as layers go by it.
func layered() *compare.Report {
	revision, compact, keys, zero := int64(40), int64(-1), int64(6), int64(0)
	return &compare.Report{Backup: &compare.Backup{Trailer: "match", ExpectedSHA256: "abc", Size: 9},
		Members: []evidence.Facts{{Auth: &evidence.AuthFacts{}, DB: &evidence.DBFacts{PageSize: 4096, InUse: 8192,
			Buckets: []string{"key", "other"}, Metas: []dumpdb.Meta{{Txid: 7}, {Txid: 8, Used: true}},
			CurrentRevision: &revision, CompactRevision: &compact, Keys: &keys, Revisions: &keys, Tombstones: &zero}}}}
}

// TestLayerTexts: a layer says what it was derived from, and nothing that is not known.
func TestLayerTexts(t *testing.T) {
	at, done, index, term, version := int64(30), int64(20), uint64(99), uint64(3), "3.6.0"
	etcd := "3.6"
	for _, c := range []struct {
		name, layer string
		change      func(*compare.Report, *evidence.Facts)
		outcome     check.Outcome
		says        string
	}{
		{"sum", "trailer", nil, check.Holds, "sha256 abc"},
		{"no sum", "trailer", func(r *compare.Report, _ *evidence.Facts) { r.Backup.Trailer = "absent" }, check.NotChecked,
			"absent: nothing proves the bytes of the file"},
		{"size", "size", nil, check.Holds, "9 B"},
		{"transaction", "metas", nil, check.Holds, "transaction 8"},
		{"pages", "pages", nil, check.Holds, "8.0 KiB in use, pages of 4096 bytes"},
		{"records", "bucket key", nil, check.Holds, "6 records"},
		{"unknown bucket", "bucket other", nil, check.Holds, "readable"},
		{"keys", "mvcc", nil, check.Holds, "6 keys, 6 records, 0 tombstones"},
		{"no bucket reached", "mvcc", func(_ *compare.Report, m *evidence.Facts) { m.Auth = nil }, check.NotChecked,
			"no bucket can be reached"},
		{"no bucket reached, but violated", "mvcc", func(r *compare.Report, m *evidence.Facts) {
			m.Auth = nil
			Judge(r, check.K04, check.Violated, "", check.Finding{Title: "a.db: a gap", Members: []string{"a.db"}})
		}, check.Violated, "a gap"},
		{"not checked", "leases", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.L02, check.NotChecked, "unreadable")
		}, check.NotChecked, "unreadable"},
		{"leases", "leases", func(_ *compare.Report, m *evidence.Facts) { m.Leases = make([]evidence.LeaseFacts, 1) },
			check.Holds, "1 lease"},
		{"one of two checks", "buckets", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.B03, check.Holds, "")
			Judge(r, check.D03, check.Violated, "", check.Finding{Title: "bad row"})
		}, check.Violated, "bad row"},
		{"damaged bucket", "bucket key", func(r *compare.Report, _ *evidence.Facts) {
			f := check.Finding{Title: "bad page"}
			f.Facts.Bucket = "key"
			Judge(r, check.D02, check.Violated, "", f)
		}, check.Violated, "bad page"},
		{"damage elsewhere", "bucket key", func(r *compare.Report, _ *evidence.Facts) {
			f := check.Finding{Title: "bad page"}
			f.Facts.Bucket = "lease"
			Judge(r, check.D02, check.Violated, "", f)
		}, check.Holds, "6 records"},
		{"four findings", "pages", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.D02, check.Violated, "", check.Finding{Title: "one"}, check.Finding{Title: "two"},
				check.Finding{Title: "three"}, check.Finding{Title: "four"})
		}, check.Violated, "one; two; three"},
		{"members", "members", func(_ *compare.Report, m *evidence.Facts) {
			m.Membership.Members = []dumpdb.Member{{ID: 1, Name: "node1"}, {ID: 0xab}}
		}, check.Holds, "2: node1, ab"},
		{"auth", "auth", func(_ *compare.Report, m *evidence.Facts) {
			*m.Auth = evidence.AuthFacts{Enabled: true, Revision: 5, Users: map[string][]string{"root": nil}}
		}, check.Holds, "on, 1 user, 0 roles, auth revision 5"},
		{"no storage version", "storage-version", nil, check.Holds, "storage version absent, as up to 3.5"},
		{"versions", "storage-version", func(_ *compare.Report, m *evidence.Facts) {
			m.DB.StorageVersion, m.ClusterVersion, m.Downgrade = &version, "3.6.0", "3.5.0"
		}, check.Holds, "storage version 3.6.0, cluster version 3.6.0, a downgrade to 3.5.0 is under way"},
		{"by whom", "taken-by", func(r *compare.Report, m *evidence.Facts) {
			r.Backup.Origin, m.WroteBy = compare.OriginSnapshot, evidence.WroteBy{Etcd: &etcd, Because: "storage version"}
			m.DB.ConsistentIndex, m.DB.Term = &index, &term
		}, check.Holds, "etcd 3.6 (storage version), written as one transaction by a server (snapshot save), at raft " +
			"index 99, term 3"},
		{"copied", "taken-by", func(r *compare.Report, m *evidence.Facts) {
			r.Backup.Origin, m.DB.ConsistentIndex = compare.OriginRaw, &index
		}, check.Holds, "copied as a file, not written by snapshot save, at raft index 99"},
		{"not known by whom", "taken-by", nil, check.NotChecked, "the file does not show it"},
		{"never compacted", "revision", nil, check.Holds, "revision 40, never compacted"},
		{"compacted", "revision", func(_ *compare.Report, m *evidence.Facts) { m.DB.CompactRevision = &done }, check.Holds,
			"revision 40, compacted at 20"},
		{"compaction done", "revision", func(_ *compare.Report, m *evidence.Facts) {
			m.DB.CompactRevision, m.DB.ScheduledCompact, m.DB.FinishedCompact = &at, &at, &at
		}, check.Holds, "revision 40, compacted at 30"},
		{"compaction unfinished", "revision", func(_ *compare.Report, m *evidence.Facts) {
			m.DB.CompactRevision, m.DB.ScheduledCompact, m.DB.FinishedCompact = &at, &at, &done
		}, check.Holds, "revision 40, compacted at 30, that compaction is unfinished"},
		{"auth that is off", "auth", nil, check.Holds, "off, 0 users, 0 roles, auth revision 0"},
		{"a cluster version alone", "storage-version", func(_ *compare.Report, m *evidence.Facts) {
			m.ClusterVersion = "3.5.0"
		}, check.Holds, "storage version absent, as up to 3.5, cluster version 3.5.0"},
		{"an index without a term", "taken-by", func(_ *compare.Report, m *evidence.Facts) {
			m.DB.ConsistentIndex = &index
		}, check.Holds, "at raft index 99"},
		{"no meta page in use", "metas", func(_ *compare.Report, m *evidence.Facts) { m.DB.Metas = nil }, check.Holds, ""},
		{"keys that were not counted", "mvcc", func(_ *compare.Report, m *evidence.Facts) { m.DB.Keys = nil },
			check.Holds, ""},
		{"records that were not counted", "bucket key", func(_ *compare.Report, m *evidence.Facts) {
			m.DB.Revisions, m.DB.Keys = nil, nil
		}, check.Holds, "readable"},
		{"no revision", "revision", func(_ *compare.Report, m *evidence.Facts) { m.DB.CurrentRevision = nil },
			check.Holds, ""},
		{"no compaction mark", "revision", func(_ *compare.Report, m *evidence.Facts) { m.DB.CompactRevision = nil },
			check.Holds, "revision 40, never compacted"},
		{"compacted at 0", "revision", func(_ *compare.Report, m *evidence.Facts) {
			zero := int64(0)
			m.DB.CompactRevision = &zero
		}, check.Holds, "revision 40, compacted at 0"},
		{"compaction never finished", "revision", func(_ *compare.Report, m *evidence.Facts) {
			m.DB.CompactRevision, m.DB.ScheduledCompact = &at, &at
		}, check.Holds, "revision 40, compacted at 30, that compaction is unfinished"},
		{"end unread", "revision", func(_ *compare.Report, m *evidence.Facts) { m.DB.Partial, m.DB.EndUnread = true, true },
			check.NotChecked, "the newest record that can be read has revision 40"},
		{"middle unread", "revision", func(_ *compare.Report, m *evidence.Facts) { m.DB.Partial = true },
			check.Holds, "revision 40, never compacted"},
		{"no page was read", "size", func(_ *compare.Report, m *evidence.Facts) { m.DB.PageSize = 0 }, check.Holds, ""},
		{"no page was read, but the trailer", "trailer", func(_ *compare.Report, m *evidence.Facts) { m.DB = nil },
			check.Holds, "sha256 abc"},
		{"no database", "size", func(_ *compare.Report, m *evidence.Facts) { m.DB = nil }, check.Holds, ""},
		{"no database has no rows", "leases", func(_ *compare.Report, m *evidence.Facts) { m.DB, m.Auth = nil, nil },
			check.Holds, ""},
		{"no bucket reached, of another layer", "size", func(_ *compare.Report, m *evidence.Facts) { m.Auth = nil },
			check.Holds, "9 B"},
		{"first violated, then not checked", "buckets", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.B03, check.Violated, "", check.Finding{Title: "no bucket key"})
			Judge(r, check.D03, check.NotChecked, "unreadable")
		}, check.Violated, "no bucket key"},
		{"first not checked, then violated", "buckets", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.B03, check.NotChecked, "unreadable")
			Judge(r, check.D03, check.Violated, "", check.Finding{Title: "bad row"})
		}, check.Violated, "bad row"},
		{"first not checked, then sound", "buckets", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.B03, check.NotChecked, "unreadable")
			Judge(r, check.D03, check.Holds, "")
		}, check.NotChecked, "unreadable"},
		{"a row of a bucket", "bucket other", func(r *compare.Report, _ *evidence.Facts) {
			f := check.Finding{Title: "bad row"}
			f.Facts.Bucket = "other"
			Judge(r, check.D03, check.Violated, "", f)
		}, check.Violated, "bad row"},
		{"deltas", "deltas", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.B10, check.Holds, "")
			r.Backup.Chain = &chain.Report{Deltas: make([]chain.Delta, 2), Events: 7, Revision: 50}
		}, check.Holds, "2 delta snapshots, 7 events, up to revision 50"},
		{"deltas that were not read", "deltas", func(r *compare.Report, _ *evidence.Facts) {
			Judge(r, check.B10, check.NotChecked, "")
		}, check.NotChecked, ""},
		{"deltas not asked for", "deltas", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := layered()
			if c.change != nil {
				c.change(r, &r.Members[0])
			}
			var got compare.Layer
			for _, l := range Layers(r) {
				if l.Name == c.layer {
					got = l
				}
			}
			if got.Outcome != c.outcome || got.Says != c.says {
				t.Errorf("%s: %q, want %s: %q", got.Outcome, got.Says, c.outcome, c.says)
			}
		})
	}
	if got := Layers(&compare.Report{Backup: &compare.Backup{}}); got != nil {
		t.Errorf("of no backup: %+v", got)
	}
	r := layered()
	r.Backup = nil
	if got := Layers(r); got != nil {
		t.Errorf("of a data dir: %+v", got)
	}
}

// TestRowsOfBuckets: of the buckets that are read their rows are counted, each by its own.
func TestRowsOfBuckets(t *testing.T) {
	records := int64(1)
	m := &evidence.Facts{DB: &evidence.DBFacts{Revisions: &records}, Leases: make([]evidence.LeaseFacts, 2),
		Alarms: make([]evidence.AlarmFacts, 3), Auth: &evidence.AuthFacts{Users: map[string][]string{"a": nil},
			Roles: map[string][]string{"a": nil, "b": nil}}}
	m.Membership.Members, m.Membership.Removed = make([]dumpdb.Member, 4), make([]dumplog.ID, 5)
	for bucket, want := range map[string]string{"key": "1 record", "lease": "2 rows", "alarm": "3 rows",
		"authUsers": "1 row", "authRoles": "2 rows", "members": "4 rows", "members_removed": "5 rows",
		"cluster": "readable"} {
		if got := rows(m, bucket); got != want {
			t.Errorf("%s: %q, want %q", bucket, got, want)
		}
	}
}
