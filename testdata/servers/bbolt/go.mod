module github.com/etcd-medic/etcd-medic/testdata/servers/bbolt

go 1.26.0

tool go.etcd.io/bbolt/cmd/bbolt

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/cobra v1.8.1 // indirect
	github.com/spf13/pflag v1.0.6 // indirect
	go.etcd.io/bbolt v1.4.3 // indirect
	golang.org/x/sys v0.29.0 // indirect
)
