package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.ClientID = text("client_id", "sarama-shop")
	version, err := sarama.ParseKafkaVersion(text("version", "2.8.0"))
	check(err)
	config.Version = version
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.RequiredAcks(number("acks", -1))
	config.Producer.Timeout = ms("timeout_ms", 10000)
	config.Net.ReadTimeout = ms("read_timeout_ms", 30000)
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.MaxWaitTime = ms("max_wait_ms", 700)
	config.Consumer.Group.Session.Timeout = ms("session_ms", 10000)
	config.Consumer.Group.Heartbeat.Interval = time.Second
	if text("assignor", "") == "sticky" {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	}
	if user, there := said["user"]; there {
		config.Net.SASL.Enable, config.Net.SASL.User, config.Net.SASL.Password = true, user, said["password"]
	}
	if secure := tlsConfig(); secure != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, secure
	}
	return config
}

func brokers(bootstrap string) []string { return strings.Split(bootstrap, ",") }

func saramaMessage(n int) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topics()[0], Key: sarama.StringEncoder(key(n)), Value: sarama.ByteEncoder(value())}
}

// `count` records, one every so often; each awaited
func saramaProduce(bootstrap string) {
	producer, err := sarama.NewSyncProducer(brokers(bootstrap), saramaConfig())
	check(err)
	for n := 0; n < number("count", 20); n++ {
		_, _, err := producer.SendMessage(saramaMessage(n))
		counted("produced", err)
		time.Sleep(ms("every_ms", 100))
	}
	producer.Close()
}

// several goroutines, each awaits every record of its own
func saramaStorm(bootstrap string) {
	var all sync.WaitGroup
	for worker := 0; worker < number("workers", 3); worker++ {
		all.Add(1)
		go func() {
			defer all.Done()
			saramaProduce(bootstrap)
		}()
	}
	all.Wait()
}

type reader struct{}

func (reader) Setup(sarama.ConsumerGroupSession) error   { count("assigned"); return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			count("consumed")
			time.Sleep(ms("work_ms", 0))
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

// reads in a group for so long; works so long on each record
func saramaConsume(bootstrap string) {
	group, err := sarama.NewConsumerGroup(brokers(bootstrap), text("group", "sarama-billing"), saramaConfig())
	check(err)
	until, cancel := context.WithTimeout(context.Background(), ms("seconds", 10)*1000)
	defer cancel()
	for until.Err() == nil {
		if err := group.Consume(until, topics(), reader{}); err != nil {
			counted("", err)
			time.Sleep(time.Second / 2)
		}
	}
	group.Close()
}

// reads a partition from an offset, begins again when it ends
func saramaRead(bootstrap string) {
	end := time.Now().Add(ms("seconds", 10) * 1000)
	consumer, err := sarama.NewConsumer(brokers(bootstrap), saramaConfig())
	check(err)
	for time.Now().Before(end) {
		one, err := consumer.ConsumePartition(topics()[0], 0, int64(number("offset", 0)))
		if err != nil {
			counted("", err)
			time.Sleep(time.Second)
			continue
		}
		for open := true; open && time.Now().Before(end); {
			select {
			case message := <-one.Messages():
				if open = message != nil; open {
					count("consumed")
				}
			case <-time.After(time.Second / 5):
			}
		}
		one.Close()
	}
	consumer.Close()
}

// a producer for every record
func saramaChurn(bootstrap string) {
	for n := 0; n < number("count", 20); n++ {
		producer, err := sarama.NewSyncProducer(brokers(bootstrap), saramaConfig())
		check(err)
		_, _, err = producer.SendMessage(saramaMessage(n))
		counted("produced", err)
		producer.Close()
		time.Sleep(ms("every_ms", 100))
	}
}

// commits into a group that others are members of, without being one
func saramaCommit(bootstrap string) {
	config := saramaConfig()
	config.Consumer.Offsets.AutoCommit.Enable = false
	client, err := sarama.NewClient(brokers(bootstrap), config)
	check(err)
	manager, err := sarama.NewOffsetManagerFromClient(text("group", "billing"), client)
	check(err)
	place, err := manager.ManagePartition(topics()[0], 0)
	check(err)
	go func() {
		for err := range place.Errors() {
			counted("", err)
		}
	}()
	for n := 0; n < number("count", 10); n++ {
		place.MarkOffset(int64(n+1), "")
		manager.Commit()
		count("asked")
		time.Sleep(ms("every_ms", 300))
	}
	client.Close()
}

// creates topics that may be there already
func saramaEnsure(bootstrap string) {
	admin, err := sarama.NewClusterAdmin(brokers(bootstrap), saramaConfig())
	check(err)
	for n := 0; n < number("count", 1); n++ {
		for _, topic := range topics() {
			counted("created", admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
		}
		time.Sleep(ms("every_ms", 0))
	}
	admin.Close()
}
