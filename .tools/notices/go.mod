module github.com/etcd-medic/etcd-medic/tools/notices

go 1.26.0
