package kube_test

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/dumpdb/kube"
)

// A custom resource stands in etcd as JSON.
func Example() {
	value := []byte(`{"apiVersion":"example.org/v1","kind":"Backup","metadata":{"name":"nightly","namespace":"shop"},"spec":{"keep":7}}`)
	obj, ok := kube.Decode(value, kube.Options{})
	if !ok || obj.Err != nil {
		fmt.Println("not decoded:", obj.Err)
		return
	}
	text, err := obj.YAML()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s/%s\n%s", obj.Kind, obj.Namespace, obj.Name, text)
	// Output:
	// Backup shop/nightly
	// apiVersion: example.org/v1
	// kind: Backup
	// metadata:
	//   name: nightly
	//   namespace: shop
	// spec:
	//   keep: 7
}
