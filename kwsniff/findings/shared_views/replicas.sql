-- Writes that wait for no follower.

-- Produce with acks=-1 that has no followers to wait for: every topic has one copy, as Metadata says.
create temp view lone_topic as
select coalesce(topic, topic_id) as topic from leaders group by coalesce(topic, topic_id) having max(replicas) = 1;

create temp view lone_topics as
select topics from (select distinct topics from client_call where is_produce(api_name) and acks = -1 and len(topics) > 0)
where list_has_all((select coalesce(list(topic), []) from lone_topic), topics);

create temp view lone_produce as
select run_id, call_id from client_call where is_produce(api_name) and acks = -1 and topics in (from lone_topics);
