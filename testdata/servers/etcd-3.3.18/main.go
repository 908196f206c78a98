// Command etcd-3.3.18 is the etcd server 3.3.18.
package main

import "github.com/coreos/etcd/etcdmain"

func main() { etcdmain.Main() }
