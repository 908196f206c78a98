package cause

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// ruleCase is one case of testdata/rules: facts and findings written down, and the lines that say all causes which are
// named for them.
type ruleCase struct {
	t     *testing.T
	name  string
	in    *Input
	named []string
}

// TestRules: each case in testdata/rules writes down members, what their replay shows and findings, and names every
// cause that fits, with certainty, members and findings. A cause that is not listed must not fit.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		for _, c := range readRules(t, f) {
			t.Run(filepath.Base(f)+"/"+c.name, func(t *testing.T) {
				var got []string
				for _, k := range All() {
					m := k.Match(c.in)
					if m == nil {
						continue
					}
					if m.RefutedBy == "" || len(m.Members) == 0 {
						t.Errorf("%s names the members %v and is refuted by %q", k.ID, m.Members, m.RefutedBy)
					}
					if twice(m.Members) || twice(m.Because) {
						t.Errorf("%s names one twice: %v because %v", k.ID, m.Members, m.Because)
					}
					got = append(got, describeMatch(string(k.ID), m))
				}
				if !slices.Equal(got, c.named) {
					t.Errorf("named\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.named, "\n  "))
				}
			})
		}
	}
}

func twice(list []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(list)))) < len(list)
}

func describeMatch(id string, m *Match) string {
	s := fmt.Sprintf("%s %s %s", id, m.Certainty, strings.Join(m.Members, ","))
	if len(m.Because) > 0 {
		s += " because " + strings.Join(m.Because, ",")
	}
	if m.Secondary {
		s += " aside"
	}
	return s
}

// readRules reads the cases of a file.
func readRules(t *testing.T, file string) (out []*ruleCase) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c *ruleCase
	for n, line := range strings.Split(string(text), "\n") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case verb == "" || verb[0] == '#':
			continue
		case verb == "case":
			c = &ruleCase{t: t, name: rest, in: &Input{Input: &check.Input{}, Findings: map[check.ID][]check.Finding{}}}
			out = append(out, c)
			continue
		case c == nil:
			t.Fatalf("%s:%d: no case yet", file, n+1)
		}
		if !c.line(verb, rest) {
			t.Fatalf("%s:%d: no verb %q", file, n+1, verb)
		}
	}
	return out
}

// line reads one line. README.md in testdata/rules has them.
func (c *ruleCase) line(verb, rest string) bool {
	c.t.Helper()
	w := words(rest)
	switch verb {
	case "named":
		c.named = append(c.named, rest)
	case "member":
		c.member(w)
	case "finding":
		c.finding(w)
	case "evidence":
		fs := c.in.Findings[check.ID(w.first)]
		f := &fs[len(fs)-1]
		f.Evidence = append(f.Evidence, c.evidence(w))
	case "replay":
		c.replay()
	case "result":
		c.result(w)
	case "event":
		c.event(w)
	case "start":
		id := c.at(w.first).MemberID
		for _, s := range w.rest {
			c.replay().Starts[id] = append(c.replay().Starts[id], replay.Start{Index: c.num(s, 10)})
		}
	case "mark":
		s := c.replay()
		m := replay.Mark{Index: c.num(w.first, 10), Kind: w.rest[0], What: w.get("what"),
			Corrupt: w.is("corrupt")}
		if w.has("member") {
			m.Member = c.at(w.get("member")).MemberID
		}
		if w.has("set") {
			s.Versions = append(s.Versions, replay.VersionSet{Index: m.Index, Version: w.get("set")})
		}
		s.Marks = append(s.Marks, m)
	case "auth":
		s := c.replay()
		s.Auth = append(s.Auth, replay.AuthEntry{Index: c.num(w.first, 10),
			Req: &dumplog.Request{Kind: dumplog.Kind(w.rest[0]), Auth: &dumplog.AuthRequest{User: w.get("user")}}})
	default:
		return false
	}
	return true
}

// wordList is a line taken apart: the first word, those after it, and those of the form NAME=VALUE.
type wordList struct {
	first string
	rest  []string
	named map[string]string
}

func words(text string) wordList {
	out := wordList{named: map[string]string{}}
	for i, w := range strings.Fields(text) {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case i == 0:
			out.first = w
		case ok:
			out.named[name] = strings.ReplaceAll(value, "_", " ")
		default:
			out.rest = append(out.rest, w)
		}
	}
	return out
}

func (w wordList) get(name string) string { return w.named[name] }
func (w wordList) has(name string) bool   { _, ok := w.named[name]; return ok }
func (w wordList) is(word string) bool    { return slices.Contains(w.rest, word) }
func (w wordList) list(name string) []string {
	if w.named[name] == "" {
		return nil
	}
	return strings.Split(w.named[name], ",")
}

func (c *ruleCase) num(s string, base int) uint64 {
	c.t.Helper()
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		c.t.Fatalf("%s: %v", c.name, err)
	}
	return n
}

func (c *ruleCase) ids(w wordList, name string) (out []dumplog.ID) {
	c.t.Helper()
	for _, s := range w.list(name) {
		out = append(out, dumplog.ID(c.num(s, 16)))
	}
	return out
}

// at is the member of that name.
func (c *ruleCase) at(label string) *evidence.Member {
	c.t.Helper()
	m := c.in.member(label)
	if m == nil {
		c.t.Fatalf("%s: no member %s", c.name, label)
	}
	return m
}

// member adds a member with a log and a database. Its ID is a1 for the first, a2 for the second.
func (c *ruleCase) member(w wordList) {
	c.t.Helper()
	n := len(c.in.Members)
	m := &evidence.Member{Source: &evidence.Source{Name: w.first}, MemberID: dumplog.ID(0xa1 + n), ClusterID: 0xc1,
		WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{FirstIndex: 1, LastIndex: 100, LastTerm: 2}},
		DB: &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{CurrentRev: 50},
			Trailer: dumpdb.Trailer{State: w.get("trailer")}}}
	m.Membership.RaftKnown = true
	m.Membership.Voters = []dumplog.ID{0xa1, 0xa2, 0xa3}
	m.Version = evidence.Version{Minor: 5}
	for _, f := range []struct {
		name string
		base int
		set  func(uint64)
	}{
		{"minor", 10, func(v uint64) { m.Version.Minor = int(v) }},
		{"id", 16, func(v uint64) { m.MemberID = dumplog.ID(v) }},
		{"cluster", 16, func(v uint64) { m.ClusterID = dumplog.ID(v) }},
		{"index", 10, func(v uint64) { m.DB.Meta.ConsistentIndex, m.AppliedMin, m.AppliedMax = &v, v, v }},
		{"term", 10, func(v uint64) { m.DB.Meta.Term = &v }},
		{"commit", 10, func(v uint64) { m.Commit = v }},
		{"first", 10, func(v uint64) { m.WAL.Summary.FirstIndex = v }},
		{"last", 10, func(v uint64) { m.WAL.Summary.LastIndex = v }},
		{"revision", 10, func(v uint64) { m.DB.KV.CurrentRev = int64(v) }},
		{"bump", 10, func(v uint64) { m.DB.KV.BumpMarker.Main = int64(v) }},
		{"hardstate", 10, func(v uint64) { m.WAL.Summary.HardState = &dumplog.HardState{Term: 2, Commit: v} }},
	} {
		if w.has(f.name) {
			f.set(c.num(w.get(f.name), f.base))
		}
	}
	if w.has("minor") || m.Version.Minor > 0 {
		m.Version.Text = fmt.Sprintf("3.%d.x", m.Version.Minor)
	}
	if w.has("voters") {
		m.Membership.Voters = c.ids(w, "voters")
	}
	m.Membership.Bucket, m.Membership.MetaConfState = c.ids(w, "bucket"), c.ids(w, "confstate")
	c.log(m, w)
	for _, a := range w.list("alarm") { // alarm=TYPE:MEMBER
		kind, id, _ := strings.Cut(a, ":")
		m.DB.Alarms = append(m.DB.Alarms, dumpdb.Alarm{Type: int32(c.num(kind, 10)),
			MemberID: dumpdb.ID(c.num(id, 16))})
	}
	if w.is("backup") {
		m.WAL, m.MemberID, m.ClusterID = evidence.WAL{}, 0, 0
	}
	if w.is("nodb") {
		m.DB = nil
	}
	c.in.Members = append(c.in.Members, m)
}

// log is what the words say of the member's log.
func (c *ruleCase) log(m *evidence.Member, w wordList) {
	c.t.Helper()
	s := &m.WAL.Summary
	s.Start = dumplog.StartBootstrap
	if w.is("restored") {
		s.Start = dumplog.StartRestore
	}
	for _, at := range w.list("snaps") {
		s.Snapshots = append(s.Snapshots, dumplog.SnapshotRecord{Index: c.num(at, 10), Term: 2})
	}
	for _, j := range w.list("jump") { // jump=FROM:TO
		from, to, _ := strings.Cut(j, ":")
		s.Jumps = append(s.Jumps, dumplog.Jump{From: c.num(from, 10), To: c.num(to, 10)})
	}
	s.Terms = []dumplog.TermRange{{Term: 2, First: s.FirstIndex, Last: s.LastIndex}}
	for i, d := range w.list("damage") { // damage=KIND[@AFTER][:short]
		kind, short := strings.CutSuffix(d, ":short")
		kind, after, _ := strings.Cut(kind, "@")
		at := uint64(0)
		if after != "" {
			at = c.num(after, 10)
		}
		s.Damage = append(s.Damage, &dumplog.DamageError{Kind: dumplog.DamageKind(kind), Short: short, After: at,
			Pos: dumplog.Pos{Offset: int64(i)}})
	}
	for i, id := range c.ids(w, "founding") { // the voters of the first entries
		m.WAL.Conf = append(m.WAL.Conf, evidence.ConfEntry{Index: uint64(i + 1), Term: 1,
			Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: id}})
	}
	for _, p := range w.list("peers") { // peers=ID:URL
		id, url, _ := strings.Cut(p, ":")
		if m.Membership.PeerURLs == nil {
			m.Membership.PeerURLs = map[dumplog.ID][]string{}
		}
		m.Membership.PeerURLs[dumplog.ID(c.num(id, 16))] = []string{url}
	}
	// conf=add:ID, learner:ID, promote:ID, update:ID, remove:ID, with ! in front: refused
	for i, ch := range w.list("conf") {
		ch, refused := strings.CutPrefix(ch, "!")
		kind, id, _ := strings.Cut(ch, ":")
		e := evidence.ConfEntry{Index: uint64(i + 1), Term: 2, Refused: refused}
		e.Change.NodeID = dumplog.ID(c.num(id, 16))
		switch kind {
		case "add":
			e.Change.Type = dumplog.ConfChangeAddNode
		case "promote":
			e.Change.Type = dumplog.ConfChangeAddNode
			e.Change.Member = &dumplog.MemberContext{IsPromote: true}
		case "learner":
			e.Change.Type = dumplog.ConfChangeAddLearnerNode
		case "update":
			e.Change.Type = dumplog.ConfChangeUpdateNode
		case "remove":
			e.Change.Type = dumplog.ConfChangeRemoveNode
		default:
			c.t.Fatalf("%s: no change %q", c.name, kind)
		}
		m.WAL.Conf = append(m.WAL.Conf, e)
	}
}

// finding adds "finding CHECK SEVERITY MEMBERS [class=] [by=] [index=] [term=]" with evidence of the same line.
func (c *ruleCase) finding(w wordList) {
	c.t.Helper()
	f := check.Finding{Check: check.ID(w.first),
		ID:       fmt.Sprintf("%s-%d", w.first, len(c.in.Findings[check.ID(w.first)])+1),
		Severity: check.Severity(w.rest[0]), Members: strings.Split(w.rest[1], ","), Class: check.Class(w.get("class")),
		ByHand: w.list("by"), Evidence: []check.Evidence{c.evidence(w)}}
	c.facts(w, &f)
	if f.Severity.Rank() < 0 {
		c.t.Fatalf("%s: no severity %q", c.name, f.Severity)
	}
	if w.has("index") {
		f.At.Index = c.num(w.get("index"), 10)
	}
	if w.has("term") {
		f.At.Term = c.num(w.get("term"), 10)
	}
	if w.is("none") {
		f.Evidence = nil
	}
	c.in.Findings[f.Check] = append(c.in.Findings[f.Check], f)
}

// facts sets kind and facts of a finding: the kind that is written down, else the only one that its check states.
func (c *ruleCase) facts(w wordList, f *check.Finding) {
	c.t.Helper()
	stated := check.KindsOf(f.Check)
	switch kind := check.Kind(w.get("kind")); {
	case kind == "" && len(stated) == 1:
		f.Kind = stated[0]
	case kind != "" && kind != "other" && !slices.Contains(stated, kind):
		c.t.Fatalf("%s: %s does not state %q", c.name, f.Check, kind)
	default:
		f.Kind = kind
	}
	if damage := w.get("damage"); f.Check[0] == 'W' {
		f.Facts.LogDamage = dumplog.DamageKind(damage)
	} else {
		f.Facts.DBDamage = dumpdb.DamageKind(damage)
	}
	f.Facts.Bucket, f.Facts.Undecodable, f.Facts.VotersDiffer = w.get("bucket"), w.is("undecodable"), w.is("voters")
	for _, id := range w.list("about") {
		f.Facts.About = append(f.Facts.About, dumplog.ID(c.num(id, 16)))
	}
}

func (c *ruleCase) evidence(w wordList) check.Evidence {
	return check.Evidence{Field: w.get("field"), Key: check.Bytes(w.get("key")), Observed: w.get("observed"),
		Bucket: w.get("bucket")}
}

// replay is the survey of the replay, with a result for each member.
func (c *ruleCase) replay() *replay.Survey {
	if c.in.Replay == nil {
		c.in.Replay = &replay.Result{Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{}}}
		for _, m := range c.in.Members {
			c.in.Replay.Members = append(c.in.Replay.Members, &replay.MemberResult{Member: m, Checked: true})
		}
	}
	return c.in.Replay.Survey
}

// result is what the replay of one member shows.
func (c *ruleCase) result(w wordList) {
	c.t.Helper()
	c.replay()
	r := c.in.Replay.Members[slices.Index(c.in.Members, c.at(w.first))]
	r.Checked = !w.is("unchecked")
	for name, st := range map[string]replay.State{"missing": replay.Missing, "contradicted": replay.Contradicted} {
		if w.has(name) {
			r.Counts[st] = int(c.num(w.get(name), 10))
		}
	}
	for name, to := range map[string]*int64{"unexplained": &r.Unexplained, "writes": &r.Writes,
		"baserevision": &r.BaseRevision} {
		if w.has(name) {
			*to = int64(c.num(w.get(name), 10))
		}
	}
	for name, to := range map[string]*int{"stale": &r.Stale, "below": &r.BelowCount} {
		if w.has(name) {
			*to = int(c.num(w.get(name), 10))
		}
	}
	if w.has("base") {
		r.BaseIndex = c.num(w.get("base"), 10)
	}
	for _, v := range w.list("extra") {
		r.Extra = append(r.Extra, int64(c.num(v, 10)))
	}
	for _, v := range w.list("kept") {
		r.Kept = append(r.Kept, replay.KeptLease{ID: int64(c.num(v, 10))})
	}
	if w.is("rerun") {
		r.Reruns = []replay.Stretch{{From: 1, To: 2}}
	}
	if w.is("ahead") {
		r.Ahead = &replay.Stretch{From: 1, To: 2}
	}
	for _, j := range w.list("jump") { // jump=RESTART:SNAPSHOT:EXTRA:POSSIBLE[:all]
		p := strings.Split(j, ":")
		r.Jumps = append(r.Jumps, replay.Jump{Restart: c.num(p[0], 10), Snapshot: c.num(p[1], 10),
			Extra: c.num(p[2], 10), Possible: c.num(p[3], 10), AllKinds: len(p) > 4 && p[4] == "all"})
	}
	for _, s := range w.list("shut") { // shut=BEGIN:LASTAPPLIED:FIRST:MISSING:AFTER
		p := strings.Split(s, ":")
		r.Shut = append(r.Shut, replay.ShutSpan{Begin: c.num(p[0], 10), LastApplied: c.num(p[1], 10),
			First: c.num(p[2], 10), Missing: int(c.num(p[3], 10)), After: int(c.num(p[4], 10))})
	}
	for _, d := range w.list("diff") { // diff=BUCKET:KEY:EXPECTED
		p := strings.Split(d, ":")
		r.StateDiffs = append(r.StateDiffs, replay.StateDiff{Bucket: p[0], Key: p[1], Expected: p[2],
			Surplus: p[2] == "absent"})
	}
	for _, id := range w.list("repeats") {
		if r.Repeats == nil {
			r.Repeats = map[int64]replay.LeaseRepeat{}
		}
		r.Repeats[int64(c.num(id, 16))] = replay.LeaseRepeat{From: 1, To: 2, Restart: 3}
	}
}

// ruleStates are the outcomes of an entry by their word.
var ruleStates = map[string]replay.Outcome{
	"applied": {State: replay.Applied, Sig: 1, Rev: 40}, "missing": {State: replay.Missing},
	"contradicted": {State: replay.Contradicted, Sig: 2, Rev: 40},
	"partial":      {State: replay.Contradicted, Sig: 2, Rev: 40, Partial: true},
	"nosig":        {State: replay.Contradicted}, "twice": {State: replay.AppliedTwice, Sig: 1},
	"unknown": {State: replay.Unknown}, "notapplied": {State: replay.NotApplied},
	"outside": {State: replay.OutsideHistory}, "noeffect": {State: replay.NoEffect},
	"oldauth":    {State: replay.Refused, Reason: replay.ReasonOldAuth, Wrongly: true},
	"permission": {State: replay.Refused, Reason: replay.ReasonPermission},
	"nouser":     {State: replay.Refused, Reason: replay.ReasonUserEmpty},
}

// event adds "event INDEX KIND OUTCOME... [lacking=0,1] [user=] [by=NODE] [lease=] [ranges=REV,REV] [compacted=REV]".
func (c *ruleCase) event(w wordList) {
	c.t.Helper()
	c.replay()
	e := &replay.Event{Index: c.num(w.first, 10), Kind: dumplog.Kind(w.rest[0]), User: w.get("user"), Compacted: -1}
	for _, s := range w.rest[1:] {
		o, ok := ruleStates[s]
		if !ok {
			c.t.Fatalf("%s: no outcome %q", c.name, s)
		}
		e.Outcomes = append(e.Outcomes, o)
	}
	for _, s := range w.list("lacking") {
		e.Lacking = append(e.Lacking, int(c.num(s, 10)))
	}
	for _, s := range w.list("ranges") {
		e.RangeRevisions = append(e.RangeRevisions, int64(c.num(s, 10)))
		e.RangeRevision = e.RangeRevisions[0]
	}
	if w.has("compacted") {
		e.Compacted = int64(c.num(w.get("compacted"), 10))
	}
	if w.has("by") {
		e.Proposer = c.at(w.get("by")).MemberID
	}
	if s := w.get("lease"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			c.t.Fatal(err)
		}
		e.Lease = n
	}
	c.in.Replay.Events = append(c.in.Replay.Events, e)
}
