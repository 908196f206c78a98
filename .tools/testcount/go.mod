module github.com/etcd-medic/etcd-medic/tools/testcount

go 1.26.0
