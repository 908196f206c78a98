package compare_test

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// The data dirs of three members, here in one archive, show what is wrong, why, and which member to keep.
func ExampleDiagnose() {
	sources := []evidence.Spec{{Where: "../testdata/incidents/a-auth-revision-replay/nodes.tar.gz"}}
	r, err := compare.Diagnose(context.Background(), sources, compare.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %s (%s)\n", r.Verdict.Class, *r.Verdict.Cause, *r.Verdict.Certainty)
	fmt.Printf("first break: check %s\n", r.Verdict.FirstBreak.Check)
	for _, m := range r.Best.Ranking {
		fmt.Printf("%s is missing %d committed writes\n", m.Member, m.Lacks.CommittedEntries)
	}
	// Output:
	// data-divergence: auth-revision-replay (proof)
	// first break: check A01
	// node3 is missing 0 committed writes
	// node2 is missing 21 committed writes
	// node1 is missing 43 committed writes
}
