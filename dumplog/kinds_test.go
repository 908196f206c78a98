package dumplog_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestEveryRequestField fills every operation of etcd's own InternalRaftRequest with random values and expects each to
// come back. A field that a newer api package adds fails here until the table of kinds has it.
func TestEveryRequestField(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	typ := reflect.TypeFor[pb.InternalRaftRequest]()
	seen := map[dumplog.Kind]bool{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, num := protoName(f)
		if f.Type.Kind() != reflect.Pointer || name == "header" || name == "v2" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for range 50 {
				q := &pb.InternalRaftRequest{Header: &pb.RequestHeader{ID: rnd.Uint64(), Username: "user",
					AuthRevision: 7}}
				v := reflect.New(f.Type.Elem())
				fill(rnd, v.Elem(), 0)
				reflect.ValueOf(q).Elem().Field(i).Set(v)
				b, err := q.Marshal()
				must(t, err)
				e := &dumplog.Entry{Term: 1, Index: 1, Data: b}
				r, err := e.Decode()
				must(t, err)
				if string(r.Kind) != name {
					t.Fatalf("field %s of number %s decoded as %s", name, num, r.Kind)
				}
				equalToAPI(t, e, r)
				seen[r.Kind] = true
			}
		})
	}
	for _, k := range dumplog.Kinds() {
		switch k {
		case dumplog.KindEmpty, dumplog.KindV2, dumplog.KindConfChange, dumplog.KindConfChangeV2, dumplog.KindUnknown:
			continue
		}
		if !seen[k] {
			t.Errorf("kind %s is no field of etcd's InternalRaftRequest", k)
		}
	}
}

func protoName(f reflect.StructField) (name, num string) {
	for i, p := range strings.Split(f.Tag.Get("protobuf"), ",") {
		if i == 1 {
			num = p
		}
		if n, ok := strings.CutPrefix(p, "name="); ok {
			name = n
		}
	}
	return strings.ToLower(name), num
}

// fill sets every field of a gogo message to a random value.
func fill(rnd *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !strings.HasPrefix(f.Name, "XXX_") {
				fill(rnd, v.Field(i), depth)
			}
		}
		if c, ok := v.Addr().Interface().(*pb.Compare); ok {
			c.Target = pb.Compare_MOD
			c.TargetUnion = &pb.Compare_ModRevision{ModRevision: int64(rnd.Uint64())}
		}
	case reflect.Pointer:
		if depth < 3 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(rnd, v.Elem(), depth+1)
		}
	case reflect.Slice:
		fillSlice(rnd, v, depth)
	case reflect.Interface:
		fillOneof(rnd, v, depth)
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", rnd.IntN(1000)))
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.Int64:
		v.SetInt(int64(rnd.Uint64()))
	case reflect.Uint64:
		v.SetUint(rnd.Uint64())
	case reflect.Int32: // enums
		v.SetInt(int64(rnd.IntN(3)))
	}
}

func fillSlice(rnd *rand.Rand, v reflect.Value, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b := make([]byte, 1+rnd.IntN(20))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		v.SetBytes(b)
		return
	}
	if depth >= 3 {
		return
	}
	n := 1 + rnd.IntN(3)
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		fill(rnd, v.Index(i), depth+1)
	}
}

func fillOneof(rnd *rand.Rand, v reflect.Value, depth int) {
	var choice any
	switch v.Type().Name() {
	case "isRequestOp_Request":
		choices := []any{&pb.RequestOp_RequestRange{}, &pb.RequestOp_RequestPut{}, &pb.RequestOp_RequestDeleteRange{},
			&pb.RequestOp_RequestTxn{}}
		if depth >= 3 {
			return
		}
		choice = choices[rnd.IntN(len(choices))]
	default:
		return // a compare's value follows its target; TestCompareTargets has them
	}
	p := reflect.ValueOf(choice)
	fill(rnd, p.Elem(), depth)
	v.Set(p)
}

// TestCompareTargets covers what fill leaves out: each target of a compare with its value.
func TestCompareTargets(t *testing.T) {
	for _, c := range []*pb.Compare{
		{Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: 3}},
		{Target: pb.Compare_CREATE, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 4}},
		{Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: 5}},
		{Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: []byte("v")}},
		{Target: pb.Compare_LEASE, TargetUnion: &pb.Compare_Lease{Lease: 6}},
	} {
		c.Key, c.RangeEnd, c.Result = []byte("k"), []byte("l"), pb.Compare_NOT_EQUAL
		q := &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Compare: []*pb.Compare{c}}}
		b, err := q.Marshal()
		must(t, err)
		e := &dumplog.Entry{Data: b}
		r, err := e.Decode()
		must(t, err)
		equalToAPI(t, e, r)
	}
}

// TestCompareOfAnotherField: a server compares with zero or nothing if a request gives the value of another target, as
// one without a target that should be CREATE, or none.
func TestCompareOfAnotherField(t *testing.T) {
	given := []*pb.Compare{{}, {TargetUnion: &pb.Compare_Version{Version: 3}},
		{TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 4}},
		{TargetUnion: &pb.Compare_ModRevision{ModRevision: 5}}, {TargetUnion: &pb.Compare_Value{Value: []byte("v")}},
		{TargetUnion: &pb.Compare_Lease{Lease: 6}}}
	for target := range int32(len(given)) { // the last is unknown
		for with, c := range given {
			if with == int(target)+1 {
				continue // TestCompareTargets
			}
			c.Target = pb.Compare_CompareTarget(target)
			b, err := (&pb.InternalRaftRequest{Txn: &pb.TxnRequest{Compare: []*pb.Compare{c}}}).Marshal()
			must(t, err)
			r, err := (&dumplog.Entry{Data: b}).Decode()
			must(t, err)
			if got := r.Txn.Compare[0]; got.Num != 0 || len(got.Value) > 0 {
				t.Errorf("target %d with %v: compares with %d %q", target, c, got.Num, got.Value)
			}
		}
	}
}

// TestV2Requests tells v2 requests of all methods from InternalRaftRequests, a SYNC without a path among them.
func TestV2Requests(t *testing.T) {
	yes, no := true, false
	for _, method := range []string{"GET", "PUT", "POST", "DELETE", "QGET", "SYNC"} {
		for _, q := range []*pb.Request{
			{ID: 1<<63 + 5, Method: method},
			{ID: 7, Method: method, Path: "/0/version", Val: "3.5.0", PrevExist: &yes, Refresh: &no, Time: 12,
				Expiration: -3},
		} {
			b, err := q.Marshal()
			must(t, err)
			e := &dumplog.Entry{Data: b}
			r, err := e.Decode()
			must(t, err)
			if r.Kind != dumplog.KindV2 {
				t.Fatalf("%s decoded as %s", method, r.Kind)
			}
			equalToAPI(t, e, r)
		}
	}
}

func TestConfChangeV2(t *testing.T) {
	q := raftpb.ConfChangeV2{Transition: raftpb.ConfChangeTransitionJointExplicit, Context: []byte("x"),
		Changes: []raftpb.ConfChangeSingle{
			{Type: raftpb.ConfChangeAddNode, NodeID: 1 << 60}, {Type: raftpb.ConfChangeRemoveNode, NodeID: 2},
		}}
	b, err := q.Marshal()
	must(t, err)
	r, err := (&dumplog.Entry{Type: dumplog.EntryConfChangeV2, Data: b}).Decode()
	must(t, err)
	const want = "conf_change_v2 transition=joint_explicit ConfChangeAddNode node=1000000000000000 " +
		"ConfChangeRemoveNode node=2"
	if got := r.Describe(dumplog.DescribeOptions{}); got != want {
		t.Errorf("%s", got)
	}
	r, err = (&dumplog.Entry{Type: dumplog.EntryConfChangeV2}).Decode()
	must(t, err)
	if got := r.Describe(dumplog.DescribeOptions{}); got != "conf_change_v2 leave joint configuration" {
		t.Errorf("%s", got)
	}
}
