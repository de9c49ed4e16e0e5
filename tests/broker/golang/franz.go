package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func franz(bootstrap string, more ...kgo.Opt) *kgo.Client {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ClientID(text("client_id", "go-shop")),
		kgo.DefaultProduceTopic(topics()[0]), kgo.RecordDeliveryTimeout(ms("delivery_ms", 20000)),
		kgo.ProduceRequestTimeout(ms("timeout_ms", 10000)),
	}
	if text("mechanism", "") == "scram" {
		options = append(options, kgo.SASL(scram.Auth{User: said["user"], Pass: said["password"]}.AsSha512Mechanism()))
	} else if _, there := said["user"]; there {
		options = append(options, kgo.SASL(plain.Auth{User: said["user"], Pass: said["password"]}.AsMechanism()))
	}
	if config := tlsConfig(); config != nil {
		config.KeyLogWriter = keyLog()
		options = append(options, kgo.DialTLSConfig(config))
	}
	if most := number("max_read", 0); most > 0 {
		options = append(options, kgo.BrokerMaxReadBytes(int32(most)), kgo.FetchMaxBytes(int32(most)))
	}
	if text("acks", "all") == "1" {
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(append(options, more...)...)
	check(err)
	return client
}

// `ca`: the file of a CA that is believed; `tls` without it: any certificate will do; `cert` and `secret`: one's own
func tlsConfig() *tls.Config {
	_, any := said["tls"]
	ca, named := said["ca"]
	if !any && !named {
		return nil
	}
	config := &tls.Config{InsecureSkipVerify: !named}
	if named {
		pem, err := os.ReadFile(ca)
		check(err)
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	if cert, there := said["cert"]; there {
		own, err := tls.LoadX509KeyPair(cert, said["secret"])
		check(err)
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// where the secrets of TLS go, if anywhere
func keyLog() io.Writer {
	name, there := said["keylog"]
	if !there {
		return nil
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(err)
	return file
}

func franzRecord(n int) *kgo.Record { return &kgo.Record{Key: []byte(key(n)), Value: value()} }

// `count` records, one every so often; each awaited
func franzProduce(bootstrap string) {
	client := franz(bootstrap)
	for n := 0; n < number("count", 20); n++ {
		counted("produced", client.ProduceSync(context.Background(), franzRecord(n)).FirstErr())
		time.Sleep(ms("every_ms", 100))
	}
	client.Close()
}

// reads for so long, in a group or from an offset; works so long on each record
func franzConsume(bootstrap string) {
	options := []kgo.Opt{kgo.FetchMaxWait(ms("max_wait_ms", 700))}
	if _, there := said["offset"]; there {
		begin := map[int32]kgo.Offset{0: kgo.NewOffset().At(int64(number("offset", 0)))}
		options = append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topics()[0]: begin}),
			kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	} else {
		options = append(options, kgo.ConsumerGroup(text("group", "go-billing")), kgo.ConsumeTopics(topics()...),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(time.Second),
			kgo.SessionTimeout(ms("session_ms", 10000)), kgo.HeartbeatInterval(time.Second))
		if _, each := said["commit_each"]; each {
			options = append(options, kgo.DisableAutoCommit())
		} else {
			options = append(options, kgo.AutoCommitMarks())
		}
	}
	if text("isolation", "") == "committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if id, there := said["instance_id"]; there {
		options = append(options, kgo.InstanceID(id))
	}
	client := franz(bootstrap, options...)
	until, cancel := context.WithTimeout(context.Background(), ms("seconds", 10)*1000)
	defer cancel()
	for until.Err() == nil {
		fetched := client.PollRecords(until, number("max_records", 10))
		fetched.EachError(func(_ string, _ int32, err error) {
			if until.Err() == nil {
				counted("", err)
				time.Sleep(time.Second / 2)
			}
		})
		fetched.EachRecord(func(record *kgo.Record) {
			count("consumed")
			time.Sleep(ms("work_ms", 0))
			if _, each := said["commit_each"]; each {
				counted("committed", client.CommitRecords(context.Background(), record))
			} else {
				client.MarkCommitRecords(record)
			}
		})
	}
	client.Close()
}

// `count` readers without a group, one begins every so often; all read until so long after the first
func franzReaders(bootstrap string) {
	until, cancel := context.WithTimeout(context.Background(), ms("seconds", 10)*1000)
	defer cancel()
	var all sync.WaitGroup
	for n := 0; n < number("count", 5); n++ {
		client := franz(bootstrap, kgo.FetchMaxWait(ms("max_wait_ms", 700)), kgo.ConsumeTopics(topics()...))
		all.Add(1)
		go func() {
			defer all.Done()
			for until.Err() == nil {
				client.PollRecords(until, 10)
			}
			client.Close()
		}()
		count("begun")
		time.Sleep(ms("every_ms", 500))
	}
	all.Wait()
}

// transactions of one record, in each of which the application works so long
func franzTransact(bootstrap string) {
	client := franz(bootstrap, kgo.TransactionalID(text("transactional_id", "tx-go")),
		kgo.TransactionTimeout(ms("transaction_timeout_ms", 40000)))
	for n := 0; n < number("count", 3); n++ {
		check(client.BeginTransaction())
		counted("produced", client.ProduceSync(context.Background(), franzRecord(n)).FirstErr())
		time.Sleep(ms("work_ms", 0))
		counted("committed", client.EndTransaction(context.Background(), kgo.TryCommit))
		time.Sleep(ms("every_ms", 100))
	}
	client.Close()
}

// an administrator who looks at all topics again and again
func franzLook(bootstrap string) {
	client := franz(bootstrap)
	for n := 0; n < number("count", 50); n++ {
		request := kmsg.NewPtrMetadataRequest()
		_, err := request.RequestWith(context.Background(), client)
		counted("looked", err)
		time.Sleep(ms("every_ms", 50))
	}
	client.Close()
}

// a client for every record
func franzChurn(bootstrap string) {
	for n := 0; n < number("count", 20); n++ {
		client := franz(bootstrap)
		counted("produced", client.ProduceSync(context.Background(), franzRecord(n)).FirstErr())
		client.Close()
		time.Sleep(ms("every_ms", 100))
	}
}
