-- Which clients speak which versions?
select client_address, client_id, any_value(client_software_name) software, api_name,
  min(api_version) oldest, max(api_version) newest
from api_calls anti join (from connections where twin_of is not null) using (run_id, connection_id)
where api_name in ('Produce', 'Fetch', 'JoinGroup')
group by all order by oldest, client_id, api_name
