// Command etcd-3.4.3 is the etcd server 3.4.3. Its module has no main package that builds from outside, so this one calls it.
package main

import "go.etcd.io/etcd/etcdmain"

func main() { etcdmain.Main() }
