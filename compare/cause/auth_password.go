package cause

import (
	"bytes"
	"slices"

	"golang.org/x/crypto/bcrypt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

var authPasswordEmptied = described(Cause{
	ID:    AuthPasswordEmptied,
	Match: matchPasswordEmptied,
})

// maxHashes bounds how many hashes are compared with the empty password, and maxCost what one may ask for: the time
// doubles with each step, from a twentieth of a second at etcd's 10.
const maxHashes, maxCost = 20, 12

// matchPasswordEmptied requires that every hash which is not that of the log is one of the empty password, and that a
// release that ignores the hash in the entry may have executed it.
func matchPasswordEmptied(in *Input) *Match {
	if in.Replay == nil || in.Replay.Survey == nil || !in.found(check.A09, check.A10) {
		return nil
	}
	members := membersOf(in, check.A09, check.A10)
	slices.Sort(members)
	m := &Match{Certainty: Strong, Members: slices.Compact(members), Because: ids(in, check.A09, check.A10),
		RefutedBy: "a member that ran 3.5 or later when it applied the entry; a password that is not empty"}
	left := maxHashes
	for i, x := range in.Members {
		if !slices.Contains(m.Members, x.Label()) {
			continue
		}
		wrong := usersWithoutHashOfLog(in, i)
		if left -= len(wrong); len(wrong) == 0 || left < 0 {
			return nil
		}
		for _, u := range wrong {
			if cost, err := bcrypt.Cost(u.Password); err != nil || cost > maxCost ||
				bcrypt.CompareHashAndPassword(u.Password, nil) != nil {
				return nil
			}
		}
	}
	return m
}

// usersWithoutHashOfLog are the users of a member whose hash differs from the hash in the log. There are none if a
// release that uses that hash executed one of the entries.
func usersWithoutHashOfLog(in *Input, pos int) (out []dumpdb.User) {
	m := in.Members[pos]
	if m.DB == nil {
		return nil
	}
	for _, u := range m.DB.Auth.Users {
		set := storedSet(in, u.Name)
		switch {
		case set == nil || bytes.Equal(set.Hash, u.Password):
		case !in.Replay.Survey.RanWithout(pos, release.PasswordHashInRequest, set.Index):
			return nil
		default:
			out = append(out, u)
		}
	}
	return out
}

// storedSet is the last entry that gives a user the hash which a member stores. If there is none, it is the last one
// with a hash, nil if no entry has one.
func storedSet(in *Input, user string) *replay.PasswordSet {
	sets := in.Replay.Survey.Passwords(user, in.Replay.Commit)
	var last *replay.PasswordSet
	for i, p := range slices.Backward(sets) {
		if p.Hash != nil && last == nil {
			last = &sets[i]
		}
		if p.Hash != nil && slices.ContainsFunc(in.Members, func(m *evidence.Member) bool {
			return m.DB != nil && slices.ContainsFunc(m.DB.Auth.Users,
				func(u dumpdb.User) bool { return u.Name == user && bytes.Equal(u.Password, p.Hash) })
		}) {
			return &sets[i]
		}
	}
	return last
}
