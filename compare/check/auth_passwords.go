package check

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

var passwordsFromLog = described(Check{
	ID:    A10,
	Needs: NeedReplay,
	Run:   runPasswordsFromLog,
})

// passwordSetsKept is the number of entries per user from which on the survey leaves out the oldest.
const passwordSetsKept = 100

func runPasswordsFromLog(in *Input) Result {
	var fs []Finding
	checked, stored := 0, 0
	for _, m := range in.Members {
		if m.HasDB() {
			stored += len(m.DB.Auth.Users)
		}
		if !m.HasDB() || !m.HasLog() || !in.Membership().foundedHere(m) || in.Replay.Survey == nil {
			continue
		}
		f := Finding{Kind: KindPasswordsNotFromLog, Severity: Error, Class: ClassLatentDivergence,
			Members: []string{m.Label()}}
		for i := range m.DB.Auth.Users {
			u := &m.DB.Auth.Users[i]
			sets := in.Replay.Survey.Passwords(u.Name, m.AppliedMax)
			if len(u.Password) == 0 || len(sets) == 0 || len(sets) >= passwordSetsKept ||
				slices.ContainsFunc(sets, func(s replay.PasswordSet) bool { return s.Hash == nil }) {
				continue
			}
			checked++
			if slices.ContainsFunc(sets, func(s replay.PasswordSet) bool { return bytes.Equal(s.Hash, u.Password) }) {
				continue
			}
			last := sets[len(sets)-1].Index
			f.add(passwordEvidence(m, u, last), in.Members.logs().termAt(last), last)
		}
		if n := len(f.Evidence); n > 0 {
			f.Title = fmt.Sprintf("%s: no entry of the log has the password %s", m.Label(),
				plural.Of(n, "hash that is stored for a user", "hashes that are stored for users"))
			f.Explanation = "bucket authUsers was edited or damaged: these users need another password on this " +
				"member, or cannot log in at all"
			f.Remedy = []Remedy{{Text: "set the password again, which every member then stores",
				Command: shell.Format("etcdctl user passwd <USER>")}}
			fs = append(fs, in.cut(f))
		}
	}
	if stored == 0 {
		return Result{Reason: "no database holds a user"}
	}
	if checked == 0 {
		return Result{Reason: "the logs do not hold every password hash since the founding of the cluster"}
	}
	return outcome(fs, "")
}

func passwordEvidence(m *evidence.Member, u *dumpdb.User, index uint64) Evidence {
	return Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(u.Page), Offset: Int64(u.Offset),
		Bucket: "authUsers", Key: Bytes(u.Name), Field: "password hash",
		Observed: "a hash that no entry carries", Expected: fmt.Sprintf("a hash of the log, the last one in entry %d",
			index), Show: showDB(m, "authUsers")}
}
