package try

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// Mend makes the repairs one after the other. The last one writes out, the others write to work. A repair that loses
// anything is refused.
func Mend(ctx context.Context, j plan.MendJob, out, work string) (did []string, err error) {
	from, last := j.Source, out
	for i, name := range j.Repairs {
		out := last
		if i+1 < len(j.Repairs) {
			out = filepath.Join(work, fmt.Sprintf("%s-%d", filepath.Base(last), i+1))
			if err := os.RemoveAll(out); err != nil { // of a process that was killed
				return nil, err
			}
			defer func() { _ = os.RemoveAll(out) }()
		}
		o := surgery.Options{Source: from, With: j.Peers, Out: out, Compare: j.Compare}
		if name == plan.MendMeta { // from its own log: the others' rows are equally wrong
			o.With = nil
		}
		r, err := surgery.Run(ctx, o, narrowRepair(name, j.Base))
		if err != nil {
			return nil, err
		}
		switch gives := strings.Join(r.GivesUp, "; "); {
		case name == plan.MendRecords && r.Unchanged:
			return nil, refusal.New("see the other ways in the plan", "the result has the same errors as before")
		case name == plan.MendRecords && gives != "": // the rest is brought back all the same
			r.Did = append(r.Did, "it does not bring back "+gives)
		case gives != "":
			return nil, refusal.New("see the other ways in the plan", "it gives up %s", gives)
		}
		did = append(did, r.Did...)
		from = evidence.Spec{Name: j.Source.Name, Where: out}
	}
	return did, nil
}

func narrowRepair(name string, base evidence.Spec) surgery.Change {
	switch name {
	case plan.MendLog:
		return surgery.WAL{}
	case plan.MendRecords:
		return surgery.DB{Proven: true}
	case plan.MendMeta:
		return surgery.Meta{MembersFromRaft: true}
	}
	return surgery.DB{Base: base}
}
