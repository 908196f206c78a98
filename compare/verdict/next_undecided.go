package verdict

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// nextUndecided offers what decides the findings that leave the verdict open; where none of them says what to do, it
// asks for more evidence.
func (ad *advice) nextUndecided(add func(text string, command shell.Command)) {
	if closed := ad.notPermitted(); len(closed) > 0 {
		add("let this user read all files of "+plural.List(closed)+", or copy them to where it may, and run again",
			none)
		return
	}
	found := false
	for _, f := range ad.Findings {
		if f.Class == check.ClassInconclusive {
			for _, m := range f.Remedy {
				add(m.Text, m.Command)
				found = true
			}
		}
	}
	if !found && ad.tooLarge() {
		ad.nextMoreMemory(add)
	} else if !found {
		add("add the missing files (--full: checks that could not be made) and run again", none)
	}
	ad.nextFromDatabases(add)
}

// notPermitted are the members with files that this user may not read: they are not gone.
func (ad *advice) notPermitted() (labels []string) {
	for _, m := range ad.Members {
		closed := func(p evidence.Problem) bool { return errors.Is(p.Err, fs.ErrPermission) }
		if slices.ContainsFunc(m.Problems, closed) {
			labels = append(labels, m.Label())
		}
	}
	return labels
}

// tooLarge reports whether the log was not replayed for lack of memory.
func (ad *advice) tooLarge() bool { return ad.Replay != nil && ad.Replay.TooLarge }

// nextMoreMemory says how to have the log replayed.
func (ad *advice) nextMoreMemory(add func(text string, command shell.Command)) {
	add("run again with more memory (--max-memory): the log was not replayed on the databases", none)
}
