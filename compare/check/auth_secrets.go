package check

import (
	"fmt"
	"strings"
)

var secretsInLog = Check{
	ID: "A06", Title: "secrets of users in the log are told",
	Doc: `Up to 3.4 a new user's or a changed password travels in clear in the log entry; from 3.5 on only its bcrypt hash does. Logins carried the
password in 3.4.0 to 3.4.9 and before 3.3.23, and carry a simple token in all versions (it is valid for minutes). Segments keep what they
hold until they are purged, also after an upgrade. It is information, no damage; nothing here prints a secret unless asked to.`,
	Needs: NeedLog,
	Run:   runSecretsInLog,
}

func runSecretsInLog(in *Input) Result {
	if in.Replay == nil || in.Replay.Survey == nil {
		return Result{Reason: "the logs could not be merged"}
	}
	f := Finding{Severity: Info, Title: "the log holds passwords of users in clear",
		Explanation: "whoever gets a copy of the data dir can read them: share no copy as it is, and change the passwords"}
	for _, s := range in.Replay.Survey.Secrets {
		if !strings.HasPrefix(s.What, "password") {
			continue
		}
		f.add(Evidence{File: s.Pos.Segment, Offset: Int64(s.Pos.Offset), Field: s.What,
			Observed: fmt.Sprintf("%d entries, the first %d/%d", s.Entries, s.Term, s.Index),
			Expected: "a hash"}, s.Term, s.Index)
	}
	if len(f.Evidence) == 0 {
		return Result{Outcome: Holds}
	}
	for _, m := range in.Members {
		if m.HasLog() {
			f.Members = append(f.Members, m.Label())
		}
	}
	for i := range f.Evidence {
		f.Evidence[i].Member = f.Members[0]
	}
	return outcome([]Finding{f}, "")
}
