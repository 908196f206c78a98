package dumplog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

func decodeAPI(t *testing.T, q *pb.InternalRaftRequest) *dumplog.Request {
	t.Helper()
	b, err := q.Marshal()
	must(t, err)
	r, err := (&dumplog.Entry{Data: b}).Decode()
	must(t, err)
	return r
}

// TestSecretsStayInside expects no password, hash, token or value in a description unless asked for.
func TestSecretsStayInside(t *testing.T) {
	const secret = "hunter2"
	for _, q := range []*pb.InternalRaftRequest{
		{AuthUserAdd: &pb.AuthUserAddRequest{Name: "u", Password: secret}},
		{AuthUserAdd: &pb.AuthUserAddRequest{Name: "u", HashedPassword: secret}},
		{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "u", Password: secret}},
		{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "u", HashedPassword: secret}},
		{Authenticate: &pb.InternalAuthenticateRequest{Name: "u", SimpleToken: secret}},
		{Authenticate: &pb.InternalAuthenticateRequest{Name: "u", Password: secret}},
		{Put: &pb.PutRequest{Key: []byte("k"), Value: []byte(secret)}},
		{Txn: &pb.TxnRequest{
			Compare: []*pb.Compare{{Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: []byte(secret)}}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("k"),
				Value: []byte(secret)}}}},
		}},
	} {
		r := decodeAPI(t, q)
		if s := r.Describe(dumplog.DescribeOptions{}); strings.Contains(s, secret) {
			t.Errorf("shown: %s", s)
		}
		digest := func(v []byte) string { return fmt.Sprint("of ", len(v), " bytes") }
		if s := r.Describe(dumplog.DescribeOptions{Digest: digest}); strings.Contains(s, secret) ||
			strings.Contains(s, "<len") != strings.Contains(s, " digest of ") {
			t.Errorf("with digests: %s", s)
		}
		if s := r.Describe(dumplog.DescribeOptions{Values: true, Secrets: true}); !strings.Contains(s, secret) {
			t.Errorf("asked for and not shown: %s", s)
		}
		if r.Kind.HasSecrets() != (q.Put == nil && q.Txn == nil) {
			t.Errorf("%s: HasSecrets %v", r.Kind, r.Kind.HasSecrets())
		}
	}
}

// TestUnknownFields expects fields that no known etcd writes to be shown with their place, at every depth.
func TestUnknownFields(t *testing.T) {
	put := protowire.AppendTag(nil, 1, protowire.BytesType)
	put = protowire.AppendBytes(put, []byte("k"))
	put = protowire.AppendTag(put, 99, protowire.VarintType)
	put = protowire.AppendVarint(put, 5)
	b := protowire.AppendTag(nil, 4, protowire.BytesType)
	b = protowire.AppendBytes(b, put)
	b = protowire.AppendTag(b, 7777, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte("new"))
	r, err := (&dumplog.Entry{Data: b}).Decode()
	must(t, err)
	if len(r.Unknown) != 2 || r.Unknown[0].Path != "put" || r.Unknown[0].Num != 99 || r.Unknown[1].Num != 7777 {
		t.Errorf("unknown: %+v", r.Unknown)
	}
	const want = `put key="k" val=<len 0> unknown put.99(wire 0)=`
	if s := r.Describe(dumplog.DescribeOptions{}); !strings.HasPrefix(s, want) || !strings.Contains(s, "7777") {
		t.Errorf("%s", s)
	}
}

// TestDecodeNesting expects transactions nested beyond reason to end in an error, not in a stack overflow.
func TestDecodeNesting(t *testing.T) {
	var txn []byte
	for range 100_000 {
		op := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), txn)
		txn = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), op)
		if len(txn) > 1<<16 {
			break
		}
	}
	b := protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), txn)
	r, err := (&dumplog.Entry{Data: b}).Decode()
	if err == nil || r.Kind != dumplog.KindUnknown {
		t.Errorf("%v, %v", r.Kind, err)
	}
}

// TestKubernetesTimes reads the clock out of a Lease and out of managedFields, written in the API server's protobuf
// form.
func TestKubernetesTimes(t *testing.T) {
	sub := func(to []byte, num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, num, protowire.BytesType), b)
	}
	stamp := func(at time.Time) []byte {
		b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(at.Unix()))
		return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), uint64(at.Nanosecond()))
	}
	object := func(raw []byte) []byte { return append([]byte("k8s\x00"), sub(nil, 2, raw)...) }
	written := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	renewed := written.Add(90 * time.Second)
	lease := object(sub(sub(nil, 1, nil), 2, sub(nil, 4, stamp(renewed))))
	pod := object(sub(nil, 1, sub(sub(nil, 17, sub(nil, 4, stamp(written.Add(-time.Hour)))), 17,
		sub(nil, 4, stamp(written)))))
	times := dumplog.Times{Near: written}
	for i, kv := range [][2]string{{"/registry/pods/a", string(pod)}, {"/x", "text"},
		{"/registry/leases/kube-node-lease/n", string(lease)}} {
		r := &dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte(kv[0]), Value: []byte(kv[1])}}
		times.Add(&dumplog.Entry{Index: uint64(i + 1)}, r)
	}
	after, before := times.Bounds(2)
	if !after.Equal(written) || !before.Equal(renewed) || len(times.Marks()) != 2 {
		t.Errorf("entry 2 between %v and %v, marks %v", after, before, times.Marks())
	}
}

// TestLivesOfRestarts expects a restart to be seen by its publish, by a jump of the IDs alone, and not to be seen where
// IDs go on.
func TestLivesOfRestarts(t *testing.T) {
	const member = dumplog.ID(0xc834da0311299bc7)
	id := func(ms, counter uint64) dumplog.RequestID { return dumplog.RequestID(0x9bc7<<48 | ms<<8 | counter) }
	var lives dumplog.Lives
	add := func(index uint64, id dumplog.RequestID, publish bool) {
		r := &dumplog.Request{Kind: dumplog.KindPut, Header: dumplog.Header{ID: id}, Put: &dumplog.PutRequest{}}
		if publish {
			r = &dumplog.Request{Kind: dumplog.KindClusterMemberAttrSet, Header: dumplog.Header{ID: id},
				MemberAttr: &dumplog.ClusterMemberAttrSet{MemberID: member, Name: "node1"}}
		}
		lives.Add(&dumplog.Entry{Index: index}, r)
	}
	add(5, id(1_000_000, 1), true)
	add(6, id(1_000_000, 200), false)
	add(7, id(1_000_003, 9), false)
	add(8, id(1_000_500, 1), true)   // restarted half a second later, published again
	add(9, id(1_000_003, 10), false) // proposed before the restart, committed after it
	add(10, id(1_090_000, 3), false) // restarted; its publish is not in the log
	got := lives.List()
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct {
		first, last uint64
		n           int
		inferred    bool
	}{{5, 9, 4, false}, {8, 8, 1, false}, {10, 10, 1, true}} {
		l := got[i]
		if l.First != want.first || l.Last != want.last || l.Requests != want.n || l.Inferred != want.inferred ||
			len(l.Members) != 1 || l.Members[0] != member {
			t.Errorf("life %d: %+v", i, l)
		}
	}
	lives.AddMember(0x1111_0000_0000_9bc7)
	if m := lives.List()[0].Members; len(m) != 2 {
		t.Errorf("two members fit the prefix, named: %v", m)
	}
}

// TestKubernetesTimesInJSON: the same clock where an API server stores JSON.
func TestKubernetesTimesInJSON(t *testing.T) {
	renewed := time.Date(2026, 7, 1, 10, 0, 0, 500_000_000, time.UTC)
	for value, want := range map[string]dumplog.TimeSource{
		`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"2026-07-01T10:00:00.500000Z"}}`:                                             dumplog.TimeLeaseRenewal,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"managedFields":[{"time":"2026-07-01T10:00:00.5Z"},{"time":"2026-06-01T00:00:00Z"}]}}`:      dumplog.TimeManagedFields,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"managedFields":[{"time":"2026-07-01T12:00:00.5+02:00"}]},"spec":{"renewTime":"tomorrow"}}`: dumplog.TimeManagedFields,
		`{"apiVersion":"example.com/v1","kind":"Widget","spec":{"renewTime":7}}`:                                                                                "",
		`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"2026-07-01`:                                                                 "",
		`{"spec":{"renewTime":"2026-07-01T10:00:00Z"}}`:                                                                                                         "",
	} {
		times := dumplog.Times{Near: renewed}
		times.Add(&dumplog.Entry{Index: 7}, &dumplog.Request{Kind: dumplog.KindPut,
			Put: &dumplog.PutRequest{Key: []byte("/registry/x"), Value: []byte(value)}})
		marks := times.Marks()
		if want == "" {
			if len(marks) > 0 {
				t.Errorf("%s: %v", value, marks)
			}
			continue
		}
		if len(marks) != 1 || marks[0].Source != want || !marks[0].Time.Equal(renewed) {
			t.Errorf("%s: %v, want %s", value, marks, want)
		}
	}
}
