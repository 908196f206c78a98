package boot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// pointer returns a pointer to a value.
func pointer[T any](v T) *T { return &v }

// sound is a data dir of a release: entries 1 to 100, of which 90 are committed and applied.
func sound(etcd string) *evidence.Facts {
	return &evidence.Facts{Commit: 90, WroteBy: evidence.WroteBy{Etcd: &etcd},
		WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: 100, Segments: []dumplog.Segment{{First: 0}},
			HardState: &dumplog.HardState{Term: 2, Commit: 90}, Snapshots: []dumplog.SnapshotRecord{{Index: 0}}},
		DB: &evidence.DBFacts{Size: 8192, ConsistentIndex: pointer(uint64(90)),
			Metas: []dumpdb.Meta{{Valid: true, Used: true}, {Valid: true}}}}
}

// purged is a data dir of a release whose log starts with entry 51, after a snapshot of entry 60.
func purged(etcd string) *evidence.Facts {
	f := sound(etcd)
	f.WAL.FirstIndex, f.WAL.Segments = 51, []dumplog.Segment{{First: 51}}
	snapshotAt(f, 60)
	return f
}

// snapshotAt adds a raft snapshot: its record in the log, and its file.
func snapshotAt(f *evidence.Facts, index uint64) {
	f.WAL.Snapshots = append(f.WAL.Snapshots, dumplog.SnapshotRecord{Index: index})
	f.Snapshots = append(f.Snapshots, evidence.SnapFacts{File: "a.snap", Index: index})
}

func logDamage(kind dumplog.DamageKind, onStart dumplog.StartEffect, after, from, to uint64) evidence.DamageFacts {
	return evidence.DamageFacts{Kind: string(kind), OnStart: onStart, File: "1.wal", Offset: 0x200, After: after,
		LostFrom: from, LostTo: to, Detail: "record at 0x200"}
}

// answered is a data dir, and what a server makes of it.
type answered struct {
	name string
	of   *evidence.Facts
	// change makes the case out of it.
	change func(*evidence.Facts)
	starts release.Answer
	// why is a part of Answer.Why, mends the beginning of each of Answer.Mends.
	why          string
	mends        []string
	torn, forgot *boot.Range
}

func damagedLog(d ...evidence.DamageFacts) func(*evidence.Facts) {
	return func(f *evidence.Facts) { f.WAL.Damage = append(f.WAL.Damage, d...) }
}

func damagedDB(kind dumpdb.DamageKind, bucket string) func(*evidence.Facts) {
	return func(f *evidence.Facts) {
		f.DB.Damage = []evidence.DamageFacts{{Kind: string(kind), Bucket: bucket, Detail: "page 7"}}
	}
}

// logCases are logs with damage.
func logCases() []answered {
	const cuts, drops = dumplog.StartCuts, dumplog.StartDrops
	torn := logDamage(dumplog.DamageTornTail, cuts, 100, 0, 0)
	zeros := []string{"the server treats the zeros at 1.wal offset 0x200 as the end of the log"}
	cut := []string{"the server cuts the unfinished record at 1.wal offset 0x200 off"}
	return []answered{
		{name: "sound", of: sound("3.5"), starts: release.Yes},
		{name: "no log", of: sound("3.5"), change: func(f *evidence.Facts) { f.WAL = nil }, why: "it has no log"},
		{name: "damage that a server does not notice", of: sound("3.5"), starts: release.Yes,
			change: damagedLog(logDamage(dumplog.DamagePadding, dumplog.StartUnnoticed, 50, 0, 0))},
		{name: "damage that a server refuses", of: sound("3.5"), starts: release.No,
			change: damagedLog(logDamage(dumplog.DamageCRC, dumplog.StartRefused, 50, 51, 51)),
			why:    "the server refuses its log: record at 0x200"},
		{name: "damage of which the effect is not known", of: sound("3.5"),
			change: damagedLog(logDamage(dumplog.DamageForeign, "", 50, 0, 0)),
			why:    "whether a server starts on its log is not known: record at 0x200"},
		{name: "first unknown, then refused", of: sound("3.5"), starts: release.No,
			change: damagedLog(logDamage(dumplog.DamageForeign, "", 50, 0, 0),
				logDamage(dumplog.DamageCRC, dumplog.StartRefused, 50, 51, 51)),
			why: "the server refuses its log"},
		{name: "first refused, then unknown", of: sound("3.5"), starts: release.No,
			change: damagedLog(logDamage(dumplog.DamageCRC, dumplog.StartRefused, 50, 51, 51),
				logDamage(dumplog.DamageForeign, "", 50, 0, 0)),
			why: "the server refuses its log"},
		{name: "damage that is not listed", of: sound("3.5"),
			change: func(f *evidence.Facts) { f.WAL.DamageOmitted = 3 }, why: "3 damaged places are not listed"},
		{name: "unfinished write of no known entry", of: sound("3.5"), starts: release.Yes, mends: cut,
			change: damagedLog(torn), torn: &boot.Range{From: 101, To: 101}},
		{name: "unfinished write of three entries", of: sound("3.5"), starts: release.Yes, mends: cut,
			change: damagedLog(logDamage(dumplog.DamageTornTail, cuts, 100, 102, 104)),
			torn:   &boot.Range{From: 102, To: 104}},
		{name: "unfinished write refused by this patch release", of: sound("3.5.6"), starts: release.No,
			change: damagedLog(torn), why: "etcd 3.5.6 refuses a log that ends inside a record"},
		{name: "unfinished write accepted by this patch release", of: sound("3.5.9"), starts: release.Yes, mends: cut,
			change: damagedLog(torn), torn: &boot.Range{From: 101, To: 101}},
		{name: "cut among committed entries", of: sound("3.5"), starts: release.Yes, mends: cut,
			change: damagedLog(logDamage(dumplog.DamageTornTail, cuts, 80, 81, 85)),
			forgot: &boot.Range{From: 81, To: 90}},
		{name: "cut right after the last committed entry", of: sound("3.5"), starts: release.Yes, mends: cut,
			change: damagedLog(logDamage(dumplog.DamageTornTail, cuts, 90, 91, 91)),
			torn:   &boot.Range{From: 91, To: 91}},
		{name: "zeros among committed entries, intact entries after them", of: sound("3.5"), starts: release.Yes,
			mends: zeros, change: damagedLog(logDamage(dumplog.DamageZeroHole, drops, 70, 71, 71)),
			forgot: &boot.Range{From: 71, To: 90}},
		{name: "zeros after the committed entries", of: sound("3.5"), starts: release.Yes, mends: zeros,
			change: damagedLog(logDamage(dumplog.DamageZeroHole, drops, 95, 96, 96))},
		{name: "zeros twice: the log ends with the first ones", of: sound("3.5"), starts: release.Yes,
			mends: append(zeros, zeros...), change: damagedLog(logDamage(dumplog.DamageZeroHole, drops, 70, 71, 71),
				logDamage(dumplog.DamageZeroHole, drops, 80, 81, 81)),
			forgot: &boot.Range{From: 71, To: 90}},
	}
}

// positionCases are data dirs whose parts end at different entries.
func positionCases() []answered {
	badRequest := func(at uint64, onStart dumplog.StartEffect) func(*evidence.Facts) {
		return damagedLog(logDamage(dumplog.DamageRequest, onStart, at-1, at, at))
	}
	lostTail := logDamage(dumplog.DamageLostTail, dumplog.StartRefused, 80, 81, 90)
	notRead := func(part string) func(*evidence.Facts) {
		return func(f *evidence.Facts) {
			f.Problems = []evidence.ProblemFacts{{Part: part, File: "b.snap", Error: "permission denied"}}
		}
	}
	return []answered{
		{name: "snap file that was not read", of: purged("3.5"), starts: release.Unknown, change: notRead("snap"),
			why: "b.snap was not examined: permission denied"},
		{name: "another file that was not read", of: purged("3.5"), starts: release.Yes, change: notRead("wal")},
		{name: "log that ends before its commit index", of: sound("3.5"), starts: release.No,
			change: func(f *evidence.Facts) { f.WAL.LastIndex, f.WAL.Damage = 80, []evidence.DamageFacts{lostTail} },
			why:    "HardState commits entry 90, but the log ends with 80", forgot: &boot.Range{From: 81, To: 90}},
		{name: "log that ends before its commit index, after a snapshot of it", of: purged("3.5"),
			starts: release.Yes, change: func(f *evidence.Facts) {
				f.WAL.LastIndex, f.WAL.Damage = 80, []evidence.DamageFacts{lostTail}
				snapshotAt(f, 90)
			}},
		{name: "log that ends with its commit index", of: sound("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) { f.WAL.LastIndex = 90 }},
		{name: "HardState that commits more than the databases show", of: sound("3.5"), starts: release.Yes,
			mends: []string{"the server cuts the unfinished record"}, change: func(f *evidence.Facts) {
				f.WAL.HardState.Commit = 95
				f.WAL.Damage = []evidence.DamageFacts{logDamage(dumplog.DamageTornTail, dumplog.StartCuts, 92, 93, 93)}
			}, forgot: &boot.Range{From: 93, To: 95}},
		{name: "database that applied more than the log has", of: sound("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) { f.Commit, *f.DB.ConsistentIndex = 101, 101 },
			forgot: &boot.Range{From: 101, To: 101}},
		{name: "no HardState, database that applied more than the log has", of: sound("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) { f.WAL.HardState, f.Commit = nil, 105 },
			forgot: &boot.Range{From: 101, To: 105}},
		{name: "received snapshot beyond the log, and a database that is ahead of it", of: purged("3.5"),
			starts: release.Yes, mends: []string{"the server installs the received 0200.snap.db"},
			change: func(f *evidence.Facts) {
				f.WAL.HardState.Commit = 200
				snapshotAt(f, 200)
				f.Commit, f.SnapDBs = 205, []dumplog.SnapDB{{File: "0200.snap.db", Index: 200}}
			}},
		{name: "snapshot of the last entry, and a database that is ahead of it", of: purged("3.5"),
			starts: release.Yes, forgot: &boot.Range{From: 101, To: 105},
			change: func(f *evidence.Facts) {
				snapshotAt(f, 100)
				f.Commit, *f.DB.ConsistentIndex = 105, 105
			}},
		{name: "purged log with its snapshot", of: purged("3.5"), starts: release.Yes},
		{name: "purged log without a snapshot", of: purged("3.5"), starts: release.No,
			change: func(f *evidence.Facts) { f.Snapshots = nil },
			why:    "it starts with entry 51, and no raft snapshot that the server uses reaches it"},
		{name: "purged log in a report that names no segment", of: purged("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) { f.Snapshots, f.WAL.Segments = nil, nil }},
		{name: "purged log with a snapshot right before it", of: purged("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) {
				f.WAL.Snapshots, f.Snapshots = nil, nil
				snapshotAt(f, 50)
			}},
		{name: "purged log, snapshot in the middle of the first segment", of: purged("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) { f.WAL.FirstIndex, f.WAL.Segments[0].First = 90, 60 }},
		{name: "snap file without a record in the log", of: purged("3.5"), starts: release.No,
			change: func(f *evidence.Facts) { f.WAL.Snapshots = nil }, why: "no raft snapshot that the server uses"},
		{name: "snapshot record beyond commit index and log", of: purged("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) { snapshotAt(f, 150) }},
		{name: "damaged snap file, log from the first entry", of: sound("3.5"), starts: release.Yes,
			mends: []string{"the server renames the damaged a.snap"}, change: func(f *evidence.Facts) {
				snapshotAt(f, 60)
				f.Snapshots[0].Damage = &evidence.DamageFacts{}
			}},
		{name: "damaged snap file, older one left", of: purged("3.5"), starts: release.Yes,
			mends: []string{"the server renames the damaged a.snap"}, change: func(f *evidence.Facts) {
				snapshotAt(f, 80)
				f.Snapshots[1].Damage = &evidence.DamageFacts{}
			}},
		{name: "damaged snap file that 3.7 does not read", of: purged("3.7"), starts: release.Yes,
			change: func(f *evidence.Facts) { f.Snapshots[0].Damage = &evidence.DamageFacts{} }},
		{name: "3.7 needs the record only", of: purged("3.7"), starts: release.Yes,
			change: func(f *evidence.Facts) { f.Snapshots = nil }},
		{name: "3.7 without a record", of: purged("3.7"), starts: release.No,
			change: func(f *evidence.Facts) { f.WAL.Snapshots = nil }, why: "no raft snapshot that the server uses"},
		{name: "bad request, and a server that panics", of: sound("3.5"), starts: release.No,
			change: badRequest(95, dumplog.StartRefused), why: "panics when it applies entry 95"},
		{name: "bad request that 3.5 may execute as one of v2", of: sound("3.5"), change: badRequest(95, ""),
			why: "whether the server panics when it applies entry 95 is not known"},
		{name: "bad request that 3.6 executes in no way", of: sound("3.6"), starts: release.No,
			change: badRequest(95, ""), why: "panics when it applies entry 95"},
		{name: "bad request up to the snapshot", of: purged("3.6"), starts: release.Yes,
			change: badRequest(60, dumplog.StartRefused)},
		{name: "bad request right after the snapshot", of: purged("3.6"), starts: release.No,
			change: badRequest(61, dumplog.StartRefused), why: "panics when it applies entry 61"},
		{name: "bad request as the last entry", of: sound("3.6"), starts: release.No,
			change: badRequest(100, dumplog.StartRefused), why: "panics when it applies entry 100"},
		{name: "bad request after the end of the log", of: sound("3.6"), starts: release.Yes,
			change: badRequest(101, dumplog.StartRefused)},
	}
}

// databaseCases are data dirs with a damaged or missing database.
func databaseCases() []answered {
	empty := func(f *evidence.Facts) { f.DB = &evidence.DBFacts{} }
	noRights := func(f *evidence.Facts) {
		f.DB, f.Problems = nil, []evidence.ProblemFacts{{Part: "db", File: "db", Error: "permission denied"}}
	}
	rebuilds := []string{"the server rebuilds the missing database from the log"}
	fills := []string{"the server fills the empty database from the log"}
	const noMeta, noDB = "neither meta page is valid", "its database is missing"
	const isEmpty = "it is empty, but the "
	return []answered{
		{name: "database missing", of: sound("3.5"), starts: release.Yes, mends: rebuilds,
			change: func(f *evidence.Facts) { f.DB = nil }},
		{name: "database that could not be read", of: sound("3.5"), starts: release.Unknown,
			why: "on its database is not known: db was not examined: permission denied", change: noRights},
		{name: "database that could not be read, log purged", of: purged("3.5"), starts: release.Unknown,
			why: "on its database is not known: db was not examined: permission denied", change: noRights},
		{name: "database missing, log purged", of: purged("3.5"), starts: release.No, why: noDB,
			change: func(f *evidence.Facts) { f.DB = nil }},
		{name: "database missing, snapshot with the whole log", of: sound("3.5"), starts: release.No, why: noDB,
			change: func(f *evidence.Facts) {
				f.DB = nil
				snapshotAt(f, 60)
			}},
		{name: "database missing, log from entry 2", of: sound("3.5"), starts: release.No, why: noDB,
			change: func(f *evidence.Facts) { f.DB, f.WAL.FirstIndex = nil, 2 }},
		{name: "database empty", of: sound("3.5"), starts: release.Yes, mends: fills, change: empty},
		{name: "database missing, log of a restored cluster", of: sound("3.5"), starts: release.Unknown,
			mends: rebuilds, why: "what the backup held is missing",
			change: func(f *evidence.Facts) { f.DB, f.WAL.Start = nil, dumplog.StartRestore }},
		{name: "database empty, log of a restored cluster", of: sound("3.5"), starts: release.Unknown, mends: fills,
			why: "what the backup held is missing", change: func(f *evidence.Facts) {
				empty(f)
				f.WAL.Start = dumplog.StartRestore
			}},
		{name: "database empty, snapshot with the whole log", of: sound("3.5"), starts: release.No,
			why: isEmpty + "raft snapshot is of entry 60",
			change: func(f *evidence.Facts) {
				empty(f)
				snapshotAt(f, 60)
			}},
		{name: "database empty, log from entry 2", of: sound("3.5"), starts: release.No,
			why: isEmpty + "log begins at entry 2",
			change: func(f *evidence.Facts) {
				empty(f)
				f.WAL.FirstIndex = 2
			}},
		{name: "database without a meta page", of: sound("3.5"), starts: release.No, why: noMeta,
			change: func(f *evidence.Facts) { f.DB.Metas, f.DB.Size = nil, 4096 }},
		{name: "one meta page damaged", of: sound("3.5"), starts: release.Yes,
			mends:  []string{"the server opens the database at its other meta page"},
			change: func(f *evidence.Facts) { f.DB.Metas[1].Valid = false }},
		{name: "damage that is not listed", of: sound("3.5"), why: "2 damaged places are not listed",
			change: func(f *evidence.Facts) { f.DB.DamageOmitted = 2 }},
		{name: "rows of keys that do not decode", of: sound("3.5"), starts: release.No,
			why: "1 undecodable row of bucket key", change: func(f *evidence.Facts) { f.DB.Undecodable = 1 }},
		{name: "damaged page", of: sound("3.5"), starts: release.No, change: damagedDB(dumpdb.DamagePage, "key"),
			why: "the server refuses its database: page 7"},
		{name: "truncated file", of: sound("3.5"), starts: release.No, change: damagedDB(dumpdb.DamageTruncated, ""),
			why: "the server refuses its database: page 7"},
		{name: "damaged freelist", of: sound("3.5"), starts: release.Yes,
			change: damagedDB(dumpdb.DamageFreelist, "")},
		{name: "missing bucket", of: sound("3.5"), starts: release.Yes, change: damagedDB(dumpdb.DamageBucket, "lease")},
		{name: "bad row of a bucket that a server reads", of: sound("3.5"), starts: release.No,
			change: damagedDB(dumpdb.DamageRow, "authUsers"), why: "the server refuses its database: page 7"},
		{name: "bad row of a member, which 3.6 reads", of: sound("3.6"), change: damagedDB(dumpdb.DamageRow, "members"),
			why: "whether a server starts on its database is not known: page 7"},
		{name: "bad row of a removed member, which some of 3.5 read", of: sound("3.5"),
			change: damagedDB(dumpdb.DamageRow, "members_removed"), why: "is not known: page 7"},
		{name: "bad row of a member, which 3.4 does not read", of: sound("3.4"), starts: release.Yes,
			change: damagedDB(dumpdb.DamageRow, "members")},
		{name: "bad row of a bucket that no server reads", of: sound("3.5"), starts: release.Yes,
			change: damagedDB(dumpdb.DamageRow, "other")},
		{name: "database as old as the snapshot", of: purged("3.5"), starts: release.Yes,
			change: func(f *evidence.Facts) { *f.DB.ConsistentIndex = 60 }},
		{name: "database older than the snapshot", of: purged("3.5"), starts: release.No,
			change: func(f *evidence.Facts) { *f.DB.ConsistentIndex = 59 },
			why:    "it has applied entry 59, but the raft snapshot is of entry 60"},
		{name: "database without an index, and a snapshot", of: purged("3.5"), starts: release.No,
			change: func(f *evidence.Facts) { f.DB.ConsistentIndex = nil }, why: "it has applied entry 0"},
		{name: "database older than the snapshot, received database of another one", of: purged("3.5"),
			starts: release.No, why: "it has applied entry 59", change: func(f *evidence.Facts) {
				*f.DB.ConsistentIndex, f.SnapDBs = 59, []dumplog.SnapDB{{File: "003b.snap.db", Index: 59}}
			}},
		{name: "database older than the snapshot, received database of it", of: purged("3.5"), starts: release.Yes,
			mends: []string{"the server installs the received 003c.snap.db"}, change: func(f *evidence.Facts) {
				*f.DB.ConsistentIndex, f.SnapDBs = 59, []dumplog.SnapDB{{File: "003c.snap.db", Index: 60}}
			}},
	}
}

// TestAnswers compares the whole answer for each kind of damage, release and position.
func TestAnswers(t *testing.T) {
	for group, cases := range map[string][]answered{"log": logCases(), "positions": positionCases(),
		"database": databaseCases()} {
		for _, c := range cases {
			t.Run(group+"/"+c.name, func(t *testing.T) {
				if c.change != nil {
					c.change(c.of)
				}
				a := boot.Of(c.of)
				if a.Starts != c.starts || !strings.Contains(a.Why, c.why) || (a.Why == "") != (c.why == "") {
					t.Errorf("starts %s (%s), want %s (%s)", a.Starts, a.Why, c.starts, c.why)
				}
				if d := cmp.Diff(c.torn, a.Torn) + cmp.Diff(c.forgot, a.Forgot); d != "" {
					t.Errorf("torn, forgot: %s", d)
				}
				if len(a.Mends) != len(c.mends) {
					t.Fatalf("mends %q, want %q", a.Mends, c.mends)
				}
				for i, m := range a.Mends {
					if !strings.HasPrefix(m, c.mends[i]) {
						t.Errorf("mends %q, want %q", m, c.mends[i])
					}
				}
				if want := c.starts == release.Yes && c.forgot == nil; a.Trusted() != want {
					t.Errorf("trusted %v", a.Trusted())
				}
			})
		}
	}
}

// TestRangeText: one entry is named as one.
func TestRangeText(t *testing.T) {
	for want, r := range map[string]boot.Range{"entry 7": {From: 7, To: 7}, "entries 7 to 8": {From: 7, To: 8}} {
		if r.String() != want {
			t.Errorf("%q, want %q", r, want)
		}
	}
}

// tornIn leaves a torn record in a segment of that size, eight bytes from 0x200 on.
func tornIn(size int64) func(*evidence.Facts) {
	return func(f *evidence.Facts) {
		x := logDamage(dumplog.DamageTornTail, dumplog.StartCuts, 100, 101, 0)
		x.Length, f.WAL.Segments = 8, []dumplog.Segment{{Name: x.File, Size: size}}
		damagedLog(x)(f)
	}
}

// TestEndsWhole: a log that a start would cut shows all that the member acknowledged. One that may have lost its end
// does not.
func TestEndsWhole(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*evidence.Facts)
		want   bool
	}{
		"sound":                      {func(*evidence.Facts) {}, true},
		"no log":                     {func(f *evidence.Facts) { f.WAL = nil }, false},
		"damage that is not listed":  {func(f *evidence.Facts) { f.WAL.DamageOmitted = 1 }, false},
		"a torn record":              {damagedLog(logDamage(dumplog.DamageTornTail, dumplog.StartCuts, 100, 101, 101)), true},
		"a torn record before zeros": {tornIn(64_000_000), true},
		"a file cut short":           {tornIn(0x208), false},
		"all after an entry lost": {damagedLog(logDamage(dumplog.DamageCRC, dumplog.StartRefused, 100, 101, 0)),
			false},
		"padding":                     {damagedLog(logDamage(dumplog.DamagePadding, dumplog.StartUnnoticed, 100, 0, 101)), true},
		"an entry lost in the middle": {damagedLog(logDamage(dumplog.DamageCRC, dumplog.StartRefused, 50, 51, 51)), true},
		"the last entry lost":         {damagedLog(logDamage(dumplog.DamageCRC, dumplog.StartRefused, 99, 100, 100)), false},
	} {
		f := sound("3.5")
		c.change(f)
		if got := boot.EndsWhole(f); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
