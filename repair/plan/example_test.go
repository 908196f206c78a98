package plan_test

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// A plan says who is kept, what is done to the other members, and which steps do it.
func ExampleNew() {
	sources := []evidence.Spec{{Where: "../../testdata/incidents/a-auth-revision-replay/nodes.tar.gz"}}
	p, err := plan.New(context.Background(), sources, nil, plan.Options{}) // nil: no repair is tried in scratch
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("mode:", p.Mode)
	for _, m := range p.Members {
		fmt.Printf("%s: %s\n", m.Name, m.Action)
	}
	for _, s := range p.Way(p.Mode).Steps[:4] {
		fmt.Println(s.ID)
	}
	// Output:
	// mode: live
	// node1: replace
	// node2: replace
	// node3: best
	// 01-backup-node3
	// 02-move-leader-node3
	// 03-advance-log-node3
	// 04-save-node1
}
