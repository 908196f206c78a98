package main

import (
	"bytes"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// kubeDB FILE [N] writes a database as an apiserver fills it: built-in kinds, a custom resource, an encrypted value, a
// damaged one; and a bucket of somebody else with one inside it. With N only the first N keys are there, as in an older
// backup.
func (s scripts) kubeDB(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: kubedb FILE [N]")
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	config := encodeKube(ts, "ConfigMap", &corev1.ConfigMap{ObjectMeta: named("web"),
		Data: map[string]string{"motd": "hello\nworld\n"}})
	secret := encodeKube(ts, "Secret", &corev1.Secret{ObjectMeta: named("login"),
		Data: map[string][]byte{"password": []byte("hunter2")}})
	puts := []struct{ key, value string }{
		{"/registry/configmaps/shop/web", string(config)},
		{"/registry/secrets/shop/login", string(secret)},
		{"/registry/example.org/backups/shop/nightly",
			`{"apiVersion":"example.org/v1","kind":"Backup","metadata":{"name":"nightly","namespace":"shop"}}`},
		{"/registry/secrets/shop/sealed", "k8s:enc:aescbc:v1:key1:\x8f\x01"},
		{"/registry/secrets/shop/torn", string(secret[:len(secret)-12])},
		{"/registry/ranges/serviceips", "plain"},
	}
	if len(args) == 2 {
		puts = puts[:number(ts, args[1])]
	}
	db, err := bbolt.Open(ts.MkAbs(args[0]), 0o600, &bbolt.Options{NoFreelistSync: true})
	ts.Check(err)
	ts.Check(db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members",
			"members_removed", "meta"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		if err := strange(tx); err != nil {
			return err
		}
		for i, p := range puts {
			rev := int64(i + 2)
			kv := mvccpb.KeyValue{Key: []byte(p.key), Value: []byte(p.value), CreateRevision: rev, ModRevision: rev,
				Version: 1}
			b, err := kv.Marshal()
			if err != nil {
				return err
			}
			if err := tx.Bucket([]byte("key")).Put(dumpdb.Rev{Main: rev}.Bytes(), b); err != nil {
				return err
			}
		}
		return nil
	}))
	ts.Check(db.Close())
}

func strange(tx *bbolt.Tx) error {
	outer, err := tx.CreateBucket([]byte("strange"))
	if err != nil {
		return err
	}
	inner, err := outer.CreateBucket([]byte("inner"))
	if err != nil {
		return err
	}
	return inner.Put([]byte("k"), []byte("v"))
}

// encodeKube stores an object with the serializer of an apiserver.
func encodeKube(ts *testscript.TestScript, kind string, obj runtime.Object) []byte {
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind("v1", kind))
	var out bytes.Buffer
	ts.Check(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out))
	return out.Bytes()
}

// zero FILE OFFSET LENGTH overwrites a part of a file with zeros.
func (s scripts) zero(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 3, "zero FILE OFFSET LENGTH")
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(make([]byte, number(ts, args[2])), number(ts, args[1]))
	ts.Check(err)
	ts.Check(f.Close())
}
