package check

import (
	"fmt"
	"strings"
)

var secretsInLog = described(Check{
	ID:    A06,
	Needs: NeedLog,
	Run:   runSecretsInLog,
})

func runSecretsInLog(in *Input) Result {
	if in.Replay == nil || in.Replay.Survey == nil {
		return Result{Reason: "the logs could not be merged"}
	}
	f := Finding{Kind: KindPasswordsInLog, Severity: Info, Title: "the log holds passwords of users in clear",
		Explanation: "whoever gets a copy of the data dir can read them: share no copy as it is, and change the " +
			"passwords"}
	for _, s := range in.Replay.Survey.Secrets {
		if !strings.HasPrefix(s.What, "password") {
			continue
		}
		f.add(in.inSomeLog(Evidence{Field: s.What,
			Observed: fmt.Sprintf("%d entries, the first %d/%d", s.Entries, s.Term, s.Index),
			Expected: "a hash"}, s.Index), s.Term, s.Index)
	}
	if len(f.Evidence) == 0 {
		return Result{Outcome: Holds}
	}
	for _, m := range in.Members {
		if m.HasLog() {
			f.Members = append(f.Members, m.Label())
		}
	}
	return outcome([]Finding{f}, "")
}
